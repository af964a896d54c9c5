// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestDefinitionsFollowComponents(t *testing.T) {
	webhook := func(name string) admission.Webhook {
		w := admission.Validating(name+".example.com", admission.Rules(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}), admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
			return admission.Allowed(), nil
		}))
		w.Path = "/" + name
		return w
	}
	now := []admission.Webhook{webhook("a")}
	logger := slog.New(slog.DiscardHandler)
	components := []Component{
		{Webhooks: []admission.Webhook{webhook("fixed")}},
		{Webhooks: []admission.Webhook{webhook("a"), webhook("b")}, Registered: func() []admission.Webhook { return now }},
	}
	settings := &registration.Settings{Adjust: func(w *admission.Webhook) { w.TimeoutSeconds = 7 }}
	told := definitions(settings, components, []admission.Webhook{webhook("own")}, nil, logger)
	want := func(names ...string) {
		t.Helper()
		var got []string
		for _, w := range told() {
			got = append(got, w.Path)
			if w.TimeoutSeconds != 7 {
				t.Errorf("%s was not adjusted: timeout %d", w.Path, w.TimeoutSeconds)
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("the definitions are %v, want %v", got, names)
		}
	}
	want("/own", "/fixed", "/a")
	now = []admission.Webhook{webhook("a"), webhook("b")}
	want("/own", "/fixed", "/a", "/b")
	// Invalid definitions leave everything unchanged.
	now = []admission.Webhook{{Name: "x"}}
	want("/own", "/fixed", "/a", "/b")
	now = nil
	want("/own", "/fixed")
	// Without such a component, the applied definitions never change.
	applied := []admission.Webhook{webhook("z")}
	if got := definitions(settings, components[:1], nil, applied, logger)(); len(got) != 1 || got[0].Path != "/z" {
		t.Errorf("the definitions are %v", got)
	}
}
