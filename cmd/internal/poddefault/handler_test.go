// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

type failingSource struct {
	match.Source
	err error
}

func (s failingSource) Select(context.Context, string, podmeta.Labels) ([]*plan.Plan, error) {
	return nil, s.err
}

func TestDefinitionIsValid(t *testing.T) {
	webhook, err := New(source.NewIndex(), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	if err := webhook.Problems(); err != nil {
		t.Error(err)
	}
	forExcluded, err := NewExcluded(source.NewIndex(), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	if err := forExcluded.Problems(); err != nil {
		t.Error(err)
	}
	if _, err := New(nil, DefaultSettings()); err == nil {
		t.Error("a webhook without a source of PodDefaults was made")
	}
}

func TestSettingsReportEveryProblem(t *testing.T) {
	settings := Settings{CommandExcluded: []string{"a", "a"}, MeshContainers: []string{"", "A_b"}}
	_, err := New(nil, settings)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no source", `excludedContainers[1]: Duplicate value: "a"`, `meshContainers[0]: Invalid value: ""`, `meshContainers[1]: Invalid value: "A_b"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestSourceErrorIsAFaultAndNoDecision(t *testing.T) {
	cause := admission.Unavailable(errors.New("not synced"), time.Second)
	webhook, err := New(failingSource{err: cause}, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(t.Context(), createRequest([]byte(`{"spec":{}}`)))
	if resp != nil || !errors.Is(err, cause) {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestRequestsThatAreNotForNewPods(t *testing.T) {
	pds := podtest.PodDefaults(t, []byte("metadata: {name: all}\nspec: {selector: {}, env: [{name: A, value: b}]}"))
	webhook, err := New(indexOf(pds...), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	pod := []byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`)
	for name, test := range map[string]struct {
		change func(*admissionv1.AdmissionRequest)
		denied string // part of the message; empty: allowed without a patch
	}{
		"an update is left alone":      {func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }, ""},
		"a deletion is left alone":     {func(r *admissionv1.AdmissionRequest) { r.Operation, r.Object.Raw = admissionv1.Delete, nil }, ""},
		"a sub-resource is left alone": {func(r *admissionv1.AdmissionRequest) { r.SubResource = "ephemeralcontainers" }, ""},
		"another resource is refused": {func(r *admissionv1.AdmissionRequest) {
			r.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "services"}
		}, "is for pods"},
		"no object is refused": {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }, "no object"},
		"an array is refused":  {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`[1]`) }, "not an object"},
		"invalid containers are refused": {func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"metadata":{"annotations":"canary"},"spec":{}}`)
		}, "not a pod"},
	} {
		t.Run(name, func(t *testing.T) {
			req := createRequest(pod)
			test.change(req)
			resp, err := webhook.Handler.Handle(t.Context(), req)
			switch {
			case err != nil:
				t.Fatal(err)
			case test.denied == "" && (!resp.Allowed || len(resp.Patch) > 0):
				t.Errorf("got %+v", resp)
			case test.denied != "" && (resp.Allowed || !strings.Contains(resp.Status.Message, test.denied) || strings.Contains(resp.Status.Message, "canary")):
				t.Errorf("got %+v", resp.Status)
			}
		})
	}
}

func TestNamespaceOfTheRequestIsUsedAndNeverPatched(t *testing.T) {
	pds := podtest.PodDefaults(t, []byte("metadata: {name: all}\nspec: {selector: {}, env: [{name: A, value: b}]}"))
	resp := handle(t, []byte(`{"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c"}]}}`), pds...)
	if len(resp.Patch) == 0 {
		t.Fatal("the pod was left alone")
	}
	for _, op := range resp.Patch {
		if strings.HasPrefix(op.Path, "/metadata/namespace") {
			t.Errorf("the namespace is patched: %s", op)
		}
	}
}

func TestMarksAreLegalAnnotations(t *testing.T) {
	for _, name := range []string{"a", strings.Repeat("a", 52), strings.Repeat("a", 53), strings.Repeat("a.", 126) + "a"} {
		_, part, _ := strings.Cut(meta.Mark(name), "/")
		if len(part) > 63 || !strings.HasPrefix(part, "poddefault-") {
			t.Errorf("the mark of a name of %d characters is %s", len(name), part)
		}
	}
	if meta.Mark(strings.Repeat("a", 60)) == meta.Mark(strings.Repeat("a", 61)) {
		t.Error("two long names have the same mark")
	}
}
