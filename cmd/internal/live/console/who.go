// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/a-h/templ"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// maxBringers limits the objects on the page.
const maxBringers = 200

// showWho searches what brings something to pods.
func showWho(ctx context.Context, v *visit) (templ.Component, error) {
	kind, text := v.FormValue("kind"), v.FormValue("text")
	if kind == "" {
		return whoPage(v, nil, false), nil
	}
	if !slices.Contains(injection.ReferenceKinds, kind) {
		return nil, fmt.Errorf("%w: the kind is %q: choose one of the list", errBadInput, manifest.Printable(kind))
	}
	namespace := v.chosen()
	found, err := injection.Bringers(ctx, v.cluster, namespace, kind, text, &v.notes)
	if namespace == "" && apierrors.IsForbidden(err) {
		v.hidden = append(v.hidden, "list PodDefaults of all namespaces. The search is in "+v.cluster.Namespace+": choose another one")
		found, err = injection.Bringers(ctx, v.cluster, v.cluster.Namespace, kind, text, &v.notes)
	}
	if errors.Is(err, injection.ErrNoPodDefaults) {
		return nothing(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	return whoPage(v, found, true), nil
}

// editLink is the page on which an object can be edited.
func (v *visit) editLink(o *manifest.Object) string {
	if o.Namespace == "" {
		return v.link("try", "type", o.Kind, "name", o.Name)
	}
	return v.link("try", "type", o.Kind, "name", o.Name, "namespace", o.Namespace)
}
