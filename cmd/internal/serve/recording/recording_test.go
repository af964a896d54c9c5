// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	testv1alpha1 "github.com/sallyport-io/sallyport/api/test/v1alpha1"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

func TestObjectsAreRedactedAndKeepTheirStructure(t *testing.T) {
	for _, tc := range []struct{ name, object, want string }{
		{
			"variables, but for those that are allowed",
			`{"spec":{"containers":[{"env":[{"name":"A","value":"s3cret"},{"name":"LANG","value":"C"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"x","key":"y"}}}]}]}}`,
			`{"spec":{"containers":[{"env":[{"name":"A","value":"REDACTED"},{"name":"LANG","value":"C"},{"name":"B","valueFrom":{"secretKeyRef":{"key":"y","name":"x"}}}]}]}}`,
		},
		{
			"annotations, but for those that are allowed, in templates too",
			`{"metadata":{"annotations":{"a":"s3cret","sallyport.io/x":"y"}},"spec":{"template":{"metadata":{"annotations":{"b":"s3cret"}}}}}`,
			`{"metadata":{"annotations":{"a":"REDACTED","sallyport.io/x":"y"}},"spec":{"template":{"metadata":{"annotations":{"b":"REDACTED"}}}}}`,
		},
		{
			"Secrets, in lists too",
			`{"items":[{"kind":"Secret","data":{"a":"czNjcmV0"},"stringData":{"b":"s3cret"},"type":"Opaque"}]}`,
			`{"items":[{"data":{"a":"UkVEQUNURUQ="},"kind":"Secret","stringData":{"b":"REDACTED"},"type":"Opaque"}]}`,
		},
		{
			"headers of probes and hooks, in PodDefaults too",
			`{"kind":"PodDefault","spec":{"sidecars":[{"lifecycle":{"postStart":{"httpGet":{"httpHeaders":[{"name":"A","value":"s3cret"}]}}},"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"LANG","value":"s3cret"}],"path":"/x"}}}]}}`,
			`{"kind":"PodDefault","spec":{"sidecars":[{"lifecycle":{"postStart":{"httpGet":{"httpHeaders":[{"name":"A","value":"REDACTED"}]}}},"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"LANG","value":"REDACTED"}],"path":"/x"}}}]}}`,
		},
		{
			"the settings of drivers, of pods, templates and PersistentVolumes",
			`{"spec":{"csi":{"volumeAttributes":{"a":"s3cret"}},"template":{"spec":{"volumes":[{"csi":{"driver":"d","volumeAttributes":{"b":"s3cret"}}},{"flexVolume":{"driver":"d","options":{"c":"s3cret"}}}]}}}}`,
			`{"spec":{"csi":{"volumeAttributes":{"a":"REDACTED"}},"template":{"spec":{"volumes":[{"csi":{"driver":"d","volumeAttributes":{"b":"REDACTED"}}},{"flexVolume":{"driver":"d","options":{"c":"REDACTED"}}}]}}}}`,
		},
		{"options of resolvers stay", `{"dnsConfig":{"options":[{"name":"ndots","value":"2"}]}}`, `{"dnsConfig":{"options":[{"name":"ndots","value":"2"}]}}`},
		{"the data of a ConfigMap stays", `{"kind":"ConfigMap","data":{"a":"b"}}`, `{"data":{"a":"b"},"kind":"ConfigMap"}`},
		{"large numbers stay", `{"a":9007199254740993,"b":1.10}`, `{"a":9007199254740993,"b":1.10}`},
		{"what has another shape", `{"env":"x","annotations":[1],"data":null}`, `{"annotations":[1],"data":null,"env":"x"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Redaction{Annotations: []string{"sallyport.io/*"}, Variables: []string{"LANG"}}.Object([]byte(tc.object))
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestPatchesAreRedactedByWhereTheyLead(t *testing.T) {
	for _, tc := range []struct{ name, kind, path, value, want string }{
		{"a variable", "Pod", "/spec/containers/0/env/-", `{"name":"A","value":"s3cret"}`, `{"name":"A","value":"REDACTED"}`},
		{"the value of one", "Pod", "/spec/containers/0/env/1/value", `"s3cret"`, `"REDACTED"`},
		{"all variables", "Pod", "/spec/containers/0/env", `[{"name":"A","value":"s3cret"}]`, `[{"name":"A","value":"REDACTED"}]`},
		{"a container", "Pod", "/spec/containers/-", `{"env":[{"name":"A","value":"s3cret"}]}`, `{"env":[{"name":"A","value":"REDACTED"}]}`},
		{"an annotation", "Pod", "/metadata/annotations/a~1b", `"s3cret"`, `"REDACTED"`},
		{"an annotation with the name of an index", "Pod", "/metadata/annotations/0", `"s3cret"`, `"REDACTED"`},
		{"an allowed one", "Pod", "/metadata/annotations/sallyport.io~1x", `"y"`, `"y"`},
		{"all annotations", "Pod", "/metadata/annotations", `{"a":"s3cret"}`, `{"a":"REDACTED"}`},
		{"data of a Secret", "Secret", "/data/a", `"czNjcmV0"`, `"UkVEQUNURUQ="`},
		{"data of a ConfigMap", "ConfigMap", "/data/a", `"b"`, `"b"`},
		{"the whole object", "Pod", "", `{"metadata":{"annotations":{"a":"s3cret"}}}`, `{"metadata":{"annotations":{"a":"REDACTED"}}}`},
		{"a header", "Pod", "/spec/containers/0/readinessProbe/httpGet/httpHeaders/-", `{"name":"A","value":"s3cret"}`, `{"name":"A","value":"REDACTED"}`},
		{"the value of one header", "Pod", "/spec/containers/0/readinessProbe/httpGet/httpHeaders/0/value", `"s3cret"`, `"REDACTED"`},
		{"a setting of a driver with the name of an index", "Pod", "/spec/volumes/0/csi/volumeAttributes/0", `"s3cret"`, `"REDACTED"`},
		{"one of a flexVolume", "Pod", "/spec/volumes/0/flexVolume/options/0", `"s3cret"`, `"REDACTED"`},
		{"an option of a resolver", "Pod", "/spec/dnsConfig/options/0/value", `"2"`, `"2"`},
		{"anything else", "Pod", "/spec/hostname", `"web"`, `"web"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patch := `[{"op":"add","path":` + quote(tc.path) + `,"value":` + tc.value + `},{"op":"remove","path":"/x"}]`
			got, err := Redaction{Annotations: []string{"sallyport.io/*"}}.Patch([]byte(patch), tc.kind)
			want := `[{"op":"add","path":` + quote(tc.path) + `,"value":` + tc.want + `},{"op":"remove","path":"/x"}]`
			if err != nil || string(got) != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func quote(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// FuzzRedaction: no value of a variable or an annotation is recorded, wherever it is.
func FuzzRedaction(f *testing.F) {
	f.Add(`{"metadata":{"annotations":{"a":"s3cret"}},"x":[{"env":[{"name":"A","value":"s3cret"}]}]}`, "/spec/env/0/value")
	f.Add(`{"kind":"Secret","data":{"0":"s3cret"}}`, "/metadata/annotations/0")
	f.Fuzz(func(t *testing.T, object, path string) {
		redaction := Redaction{}
		if out, err := redaction.Object([]byte(object)); err == nil && len(out) > 0 {
			again, err := redaction.Object(out)
			if err != nil || !bytes.Equal(again, out) {
				t.Errorf("redacted twice: %s, %s, %v", out, again, err)
			}
		}
		patch := `[{"op":"add","path":` + quote(path) + `,"value":` + quote(object) + `}]`
		if out, err := redaction.Patch([]byte(patch), "Pod"); err != nil || !json.Valid(out) {
			t.Errorf("%s: %s, %v", patch, out, err)
		}
	})
}

func settings(t *testing.T, rate int32) configv1alpha1.Recording {
	return configv1alpha1.Recording{Directory: filepath.Join(t.TempDir(), "sub"), SamplingRatePerMillion: rate, MaxSizeMegabytes: 1, MaxFiles: 2, MaxAgeDays: 1}
}

func request(uid string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: types.UID(uid), Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Operation: admissionv1.Create, Name: "web", Namespace: "team-a",
		UserInfo: authenticationv1.UserInfo{Username: "jane", Extra: map[string]authenticationv1.ExtraValue{"token": {"s3cret"}}},
		Object:   runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"s3cret"}]}]}}`)},
	}
}

// recorded runs a recorder around calls and returns its lines.
func recorded(t *testing.T, s configv1alpha1.Recording, calls func(*Recorder)) []testv1alpha1.RecordedReview {
	t.Helper()
	metrics := prometheus.NewRegistry()
	r, err := New(s, slog.New(slog.DiscardHandler), metrics)
	if err != nil {
		t.Fatal(err)
	}
	calls(r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the queue is still written
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.Directory, FileName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("s3cret")) {
		t.Errorf("a secret was recorded:\n%s", data)
	}
	var out []testv1alpha1.RecordedReview
	for line := range strings.Lines(string(data)) {
		var one testv1alpha1.RecordedReview
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	if got := testutil.ToFloat64(r.reviews.WithLabelValues("written")); int(got) != len(out) {
		t.Errorf("%v written, %d there", got, len(out))
	}
	return out
}

func TestRequestsAndAnswersAreRecordedWithoutSecrets(t *testing.T) {
	handler := admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		switch req.UID {
		case "denied":
			return admission.DeniedResponse("no"), nil
		case "failed":
			return nil, errors.New("broken")
		}
		copy(req.Object.Raw, "XXXX") // a handler may write to its input
		patch := jsonpatch.Patch{{Op: "add", Path: "/spec/containers/0/env/-", Value: json.RawMessage(`{"name":"B","value":"s3cret"}`)}}
		return admission.Patched(patch), nil
	})
	lines := recorded(t, settings(t, 1_000_000), func(r *Recorder) {
		for _, uid := range []string{"patched", "denied", "failed"} {
			_, err := r.Handle(t.Context(), "a.example.com", request(uid), handler)
			if (err != nil) != (uid == "failed") {
				t.Error(err)
			}
		}
	})
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	patched, denied, failed := lines[0], lines[1], lines[2]
	if patched.Webhook != "a.example.com" || patched.Time.IsZero() || patched.Review.Request.UserInfo.Username != "jane" {
		t.Errorf("got %+v", patched)
	}
	if diff := cmp.Diff(`[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"B","value":"REDACTED"}}]`, string(patched.Review.Response.Patch)); diff != "" {
		t.Error(diff)
	}
	if want := `{"spec":{"containers":[{"env":[{"name":"A","value":"REDACTED"}],"name":"main"}]}}`; string(patched.Review.Request.Object.Raw) != want {
		t.Errorf("got %s", patched.Review.Request.Object.Raw)
	}
	if r := denied.Review.Response; r.Allowed || r.Result.Message != "no" {
		t.Errorf("got %+v", r)
	}
	if failed.Error != "broken" || failed.Review.Response != nil {
		t.Errorf("got %+v", failed)
	}
}

func TestTheSampleIsThatOfTheUIDs(t *testing.T) {
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	sample := func(rate int32) []string {
		var uids []string
		r, err := New(settings(t, rate), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2000 {
			req := request("uid-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26))
			if r.samples("a", req) {
				uids = append(uids, string(req.UID))
			}
		}
		return uids
	}
	tenth := sample(100_000)
	if n := len(tenth); n < 140 || n > 260 {
		t.Errorf("%d of 2000 are in a tenth", n)
	}
	if diff := cmp.Diff(tenth, sample(100_000)); diff != "" {
		t.Error(diff)
	}
	s := settings(t, 1_000_000)
	s.Webhooks = []string{"b"}
	lines := recorded(t, s, func(r *Recorder) {
		for _, webhook := range []string{"a", "b"} {
			if _, err := r.Handle(t.Context(), webhook, request("x"), allow); err != nil {
				t.Error(err)
			}
		}
	})
	if len(lines) != 1 || lines[0].Webhook != "b" {
		t.Errorf("got %+v", lines)
	}
}

func TestAFullQueueDropsReviewsAndHoldsNoCall(t *testing.T) {
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	var dropped float64
	lines := recorded(t, settings(t, 1_000_000), func(r *Recorder) {
		for range queueLength + 10 {
			if _, err := r.Handle(t.Context(), "a", request("x"), allow); err != nil {
				t.Error(err)
			}
		}
		dropped = testutil.ToFloat64(r.reviews.WithLabelValues("dropped"))
	})
	if dropped != 10 || len(lines) != queueLength {
		t.Errorf("%v dropped, %d written", dropped, len(lines))
	}
}

func TestARecordingIsBounded(t *testing.T) {
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	s := settings(t, 1_000_000)
	r, err := New(s, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	big := request("x")
	big.Object.Raw = []byte(`{"a":"` + strings.Repeat("b", 300_000) + `"}`)
	for range 20 { // 6 MB
		if _, err := r.Handle(t.Context(), "a", big, allow); err != nil {
			t.Fatal(err)
		}
		r.record(<-r.queue.samples)
	}
	if err := r.file.Close(); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // rotation removes old files in the background
		total = 0
		entries, err := os.ReadDir(s.Directory)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				total += info.Size()
			}
		}
		if total <= 2<<20 || time.Now().After(deadline) {
			break
		}
	}
	if total > 2<<20 {
		t.Errorf("%d bytes in 2 files of 1 MB", total)
	}
}

func TestNothingIsRecordedWithoutADirectory(t *testing.T) {
	r, err := New(configv1alpha1.Recording{}, nil, nil)
	if r != nil || err != nil {
		t.Fatalf("%v, %v", r, err)
	}
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	if answer, err := r.Handle(t.Context(), "a", request("x"), allow); err != nil || !answer.Allowed {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestSettings(t *testing.T) {
	good := configv1alpha1.Recording{MaxSizeMegabytes: 1, MaxFiles: 1, MaxAgeDays: 1, RecentMegabytes: 1}
	for _, tc := range []struct {
		change func(*configv1alpha1.Recording)
		want   string
	}{
		{func(*configv1alpha1.Recording) {}, ""},
		{func(s *configv1alpha1.Recording) { s.Directory = "/x" }, "recording.samplingRatePerMillion: Required value"},
		{func(s *configv1alpha1.Recording) { s.SamplingRatePerMillion = 1 }, "recording.directory: Required value"},
		{func(s *configv1alpha1.Recording) { s.Directory, s.SamplingRatePerMillion = "x", 1 }, "must be an absolute path"},
		{func(s *configv1alpha1.Recording) { s.Directory, s.SamplingRatePerMillion = "/x", -1 }, "must be between 0 and 1000000"},
		{func(s *configv1alpha1.Recording) { s.MaxFiles = 0 }, "recording.maxFiles: Invalid value"},
		{func(s *configv1alpha1.Recording) { s.RecentReviews, s.SamplingRatePerMillion = 1, 1 }, ""},
		{func(s *configv1alpha1.Recording) { s.RecentReviews = 1 }, "recording.samplingRatePerMillion: Required value"},
		{func(s *configv1alpha1.Recording) { s.RecentReviews = -1 }, "recording.recentReviews: Invalid value"},
		{func(s *configv1alpha1.Recording) { s.RecentReviews = 100_001 }, "must be between 0 and 100000"},
		{func(s *configv1alpha1.Recording) { s.RecentMegabytes = 0 }, "recording.recentMegabytes: Invalid value"},
		{func(s *configv1alpha1.Recording) { s.RecentMegabytes = 65 }, "must be between 1 and 64"},
	} {
		s := good
		tc.change(&s)
		err := Validate(&s, field.NewPath("recording")).ToAggregate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
