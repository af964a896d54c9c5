// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
)

// Book has a DeepCopyObject that was made before there were tags, and shares the pages.
type Book struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Title             string   `json:"title,omitempty"`
	Tags              []string `json:"tags,omitempty"`
	Pages             []string `json:"pages,omitempty"`
}

func (b *Book) DeepCopyObject() runtime.Object {
	c := *b
	c.Tags = nil
	return &c
}

// A method that copies less than there is changes no patch, be it the first call, after
// which objects are copied to compare with, or a later one, and with origins or without.
func TestAStaleDeepCopyChangesNoPatch(t *testing.T) {
	mutate := admission.Mutate(func(_ context.Context, b *Book) error {
		b.Title, b.Pages[0] = "changed", "first"
		return nil
	})
	handler := admission.Chain(mutate, admission.Mutate(func(_ context.Context, b *Book) error {
		b.Pages[1] = "second"
		return nil
	}))
	request := func() *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Book"},
			Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Book","metadata":{"name":"a"},"title":"old","tags":["x"],"pages":["1","2"]}`)},
		}
	}
	const want = `[{"op":"add","path":"/title","value":"changed"},{"op":"replace","path":"/pages/0","value":"first"},{"op":"replace","path":"/pages/1","value":"second"}]`
	for i := range 4 {
		ctx := t.Context()
		if i == 3 {
			ctx = admission.WithOrigins(ctx)
		}
		response, err := handler.Handle(ctx, request())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(response.Patch.AppendJSON(nil)); got != want {
			t.Errorf("call %d: %s, want %s", i+1, got, want)
		}
	}
	if problem := handler.(interface{ CopyProblem() string }).CopyProblem(); problem != "the DeepCopyObject of admission_test.Book shares .DeletionTimestamp with the object: run controller-gen again" {
		t.Errorf("the problem is %q", problem)
	}
}
