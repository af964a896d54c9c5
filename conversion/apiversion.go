// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// APIVersionOnly converts between versions of a kind that differ only in apiVersion. It
// replaces the value in the bytes and does not decode the rest.
func APIVersionOnly(kind schema.GroupKind, versions ...string) Converter {
	return newConverter(kind, versions, apiVersions{kind.Group, versions}, checkKind(kind))
}

func checkKind(kind schema.GroupKind) error {
	if kind.Kind == "" || kind.Group == "" {
		return errors.New("group and kind are needed")
	}
	return nil
}

type apiVersions struct {
	group    string
	versions []string
}

func (a apiVersions) convert(_ context.Context, dst []byte, in *rawobject.Object, _, to int) ([]byte, error) {
	at := in.At.APIVersion
	dst = append(dst, in.Raw[:at.Start]...)
	dst = append(append(append(dst, '"'), a.group...), '/')
	dst = append(append(dst, a.versions[to]...), '"')
	return append(dst, in.Raw[at.End:]...), nil
}

func (apiVersions) prototype(int) runtime.Object { return nil }
