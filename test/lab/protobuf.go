// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InProtobuf encodes a list as the API server does.
func InProtobuf(t testing.TB, list *metav1.PartialObjectMetadataList) []byte {
	t.Helper()
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, Raw: raw, ContentType: "x"}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), envelope...)
}
