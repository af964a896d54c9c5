// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

func testConflict(t *testing.T, e *env) {
	name := e.namespace(t, "conflict")
	s := e.serve(t, name)
	e.createSoon(t, podDefault(name, "proxy", kubeflowv1alpha1.PodDefaultSpec{
		Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "canary-of-the-poddefault"}},
	}), simplePod(name, "probe"), meta.Mark("proxy"))

	pod := simplePod(name, "denied")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "canary-of-the-pod"}}
	err := e.client.Create(t.Context(), pod)
	if err == nil {
		t.Fatal("the pod was admitted")
	}
	got := status(t, err)
	for _, part := range []string{
		"conflict occurred while applying poddefaults: proxy on pod:", "PodDefault conflict/proxy", "env HTTP_PROXY", "container main",
	} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("the message does not say %q: %s", part, got.Message)
		}
	}
	if got.Code != http.StatusBadRequest {
		t.Errorf("the code is %d", got.Code)
	}
	for _, text := range []string{got.Message, s.Log()} {
		if strings.Contains(text, "canary") {
			t.Errorf("a value was told: %s", text)
		}
	}
}

func testInvalidObjects(t *testing.T, e *env) {
	name := e.namespace(t, "invalid")
	long := strings.Repeat("a", 253)
	for _, pd := range []*kubeflowv1alpha1.PodDefault{
		podDefault(name, "wrong-selector", kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"no key": "use"}},
		}),
		podDefault(name, "duplicate-env", kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}}),
		podDefault(name, "mount-without-volume", kubeflowv1alpha1.PodDefaultSpec{VolumeMounts: []corev1.VolumeMount{{Name: "nowhere", MountPath: "/x"}}}),
		podDefault(name, long, kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "LONG", Value: "1"}}}),
	} {
		e.create(t, pd) // before there is a webhook that would refuse it
	}
	s := e.serve(t, name)
	e.createSoon(t, envPodDefault(name, "works"), simplePod(name, "probe"), meta.Mark("works"))
	pod := simplePod(name, "injected")
	e.create(t, pod)
	if got := envNames(pod.Spec.Containers[0]); strings.Join(got, ",") != "LONG,FROM_PODDEFAULT" {
		t.Errorf("env is %v", got)
	}
	if _, ok := pod.Annotations[meta.Mark(long)]; !ok {
		t.Errorf("the object with the long name left no mark: %v", pod.Annotations)
	}
	want := []string{"duplicate-env", "mount-without-volume", long, "works"}
	slices.Sort(want)
	if got := pod.Annotations[meta.DecisionsAnnotation]; got != strings.Join(want, ",") {
		t.Errorf("the decisions are %s", got)
	}
	for _, object := range []string{"wrong-selector", "duplicate-env"} {
		if !strings.Contains(s.Log(), object) {
			t.Errorf("the log does not tell of %s:\n%s", object, s.Log())
		}
	}
}

// testBadInput posts to the webhook what no API server would.
func testBadInput(t *testing.T, e *env) {
	name := e.namespace(t, "bad-input")
	s := e.serve(t, name)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	good := review(t, simplePod(name, "posted"))
	const jsonType = "application/json"
	edit := func(old, new string) []byte {
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("the review does not hold %s", old)
		}
		return bytes.Replace(good, []byte(old), []byte(new), 1)
	}

	before, err := strconv.Atoi(s.metric(t, "go_goroutines"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name         string
		method, path string
		contentType  string
		body         []byte
		code         int
		says         string
	}{
		{"an empty body", "POST", poddefault.Path, jsonType, nil, 400, "empty"},
		{"a truncated body", "POST", poddefault.Path, jsonType, good[:len(good)/2], 400, "AdmissionReview"},
		{"nine MiB", "POST", poddefault.Path, jsonType, bytes.Repeat([]byte(" "), 9<<20), 413, "8388608"},
		{"ten thousand levels", "POST", poddefault.Path, jsonType, edit(`"spec":{`, `"x":`+strings.Repeat("[", 10000)+strings.Repeat("]", 10000)+`,"spec":{`), 400, "nested deeper"},
		{"ten thousand levels that never end", "POST", poddefault.Path, jsonType, bytes.Repeat([]byte(`{"a":`), 10000), 400, "nested deeper"},
		{"another content type", "POST", poddefault.Path, "text/plain", good, 415, "application/json"},
		{"no content type", "POST", poddefault.Path, "", good, 415, "application/json"},
		{"another kind", "POST", poddefault.Path, jsonType, edit(`"kind":"AdmissionReview"`, `"kind":"ConversionReview"`), 400, "AdmissionReview"},
		{"an unknown version", "POST", poddefault.Path, jsonType, edit(`"apiVersion":"admission.k8s.io/v1"`, `"apiVersion":"admission.k8s.io/v2"`), 400, "admission.k8s.io/v1"},
		{"request: null", "POST", poddefault.Path, jsonType, []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`), 400, "no request"},
		{"no uid", "POST", poddefault.Path, jsonType, edit(`"uid":"u-1"`, `"uid":""`), 400, "uid"},
		{"object: null", "POST", poddefault.Path, jsonType, []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","object":null}}`), 200, `"allowed":false`},
		{"an invalid object", "POST", poddefault.Path, jsonType, []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","object":[1]}}`), 200, `"allowed":false`},
		{"another resource", "POST", poddefault.Path, jsonType, edit(`"resource":"pods"`, `"resource":"configmaps"`), 200, `"allowed":false`},
		{"duplicate names in the envelope", "POST", poddefault.Path, jsonType, edit(`"uid":"u-1"`, `"uid":"u-1","uid":"u-2"`), 400, "a name"},
		{"duplicate names in the pod", "POST", poddefault.Path, jsonType, edit(`"spec":{`, `"spec":{},"spec":{`), 400, "a name"},
		{"invalid UTF-8", "POST", poddefault.Path, jsonType, edit(`jupyter`, "jup\xff\xfeyter"), 400, "UTF-8"},
		{"not JSON at all", "POST", poddefault.Path, jsonType, []byte("<xml/>"), 400, "AdmissionReview"},
		{"GET", "GET", poddefault.Path, "", nil, 405, "POST"},
		{"an unknown path", "POST", "/elsewhere", jsonType, good, 404, ""},
		{"unknown fields", "POST", poddefault.Path, jsonType, edit(`"spec":{`, `"future":{"a":[1]},"spec":{`), 200, `"allowed":true,"patch"`},
		{"a good review", "POST", poddefault.Path, jsonType, good, 200, `"allowed":true,"patch"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 20 {
				code, answer := s.post(t, test.method, test.path, test.contentType, test.body)
				if code != test.code || !strings.Contains(answer, test.says) {
					t.Fatalf("got %d %s, want %d and %q", code, answer, test.code, test.says)
				}
				if code == 200 && (!strings.Contains(answer, `"uid":"u-1"`) || !json.Valid([]byte(answer))) {
					t.Fatalf("the answer is not for this request: %s", answer)
				}
			}
		})
	}
	eventually(t, "the goroutines of bad requests to end", func(context.Context) (bool, error) {
		after, err := strconv.Atoi(s.metric(t, "go_goroutines"))
		return after <= before+5, err
	})
	if panics := s.metric(t, "sallyport_serving_panics_total"); panics != "0" {
		t.Errorf("%s panics", panics)
	}
	e.create(t, simplePod(name, "after-all"))
}

// review is what the API server would send for the pod.
func review(t *testing.T, pod *corev1.Pod) []byte {
	t.Helper()
	r := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u-1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: pod.Namespace, Operation: admissionv1.Create,
		},
	}
	r.Request.Object.Raw = toJSON(t, pod)
	return toJSON(t, r)
}

func toJSON(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	return bytes.Equal(toJSON(t, a), toJSON(t, b))
}
