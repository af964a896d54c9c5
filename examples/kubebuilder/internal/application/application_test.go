// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1 "github.com/sallyport-io/sallyport/examples/kubebuilder/api/v1"
	"github.com/sallyport-io/sallyport/examples/kubebuilder/internal/application"
)

func TestTheWebhooksDecideInTheApplicationAsInTheManager(t *testing.T) {
	app, err := application.New()
	if err != nil {
		t.Fatal(err)
	}
	webhooks := app.Webhooks()
	raw := func(rank string) []byte {
		return []byte(`{"apiVersion":"fleet.example.com/v1","kind":"Captain","metadata":{"name":"ahab"},"spec":{"ship":"pequod"` + rank + `,"later":1}}`)
	}
	request := func(object []byte) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{
			UID: "u", Operation: admissionv1.Create, Name: "ahab",
			Kind:   metav1.GroupVersionKind{Group: fleetv1.GroupVersion.Group, Version: "v1", Kind: "Captain"},
			Object: runtime.RawExtension{Raw: object},
		}
	}

	got, err := webhooks[0].Handler.Handle(t.Context(), request(raw("")))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(got.Patch)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"op":"add","path":"/spec/rank","value":1}]`; string(patch) != want {
		t.Errorf("patch %s, want %s", patch, want)
	}

	got, err = webhooks[1].Handler.Handle(t.Context(), request(raw(`,"rank":9`)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Allowed || got.Status.Code != 422 || !strings.Contains(got.Status.Message, "spec.rank") ||
		len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "crew") {
		t.Errorf("got %+v, %v", got, got.Status)
	}
}
