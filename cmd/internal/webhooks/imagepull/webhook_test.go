// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/test/cases"
)

func newWebhooks(t testing.TB, settings, _ []byte) []admission.Webhook {
	t.Helper()
	s := DefaultSettings()
	if err := yaml.UnmarshalStrict(settings, &s); err != nil {
		t.Fatal(err)
	}
	webhooks, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks
}

func TestCases(t *testing.T) { cases.Run(t, podResource, newWebhooks) }

func TestDefinitionsAreValid(t *testing.T) {
	for _, settings := range []string{"{}", "alwaysPull: false\nforbidLatest: true\nexemptNamespaces: [a]"} {
		webhooks := newWebhooks(t, []byte(settings), nil)
		for _, webhook := range webhooks {
			if err := webhook.Problems(); err != nil {
				t.Error(err)
			}
		}
		if mutates := webhooks[0].Type == admission.TypeMutating; mutates != (settings == "{}") {
			t.Errorf("%s: a mutating webhook: %v", settings, mutates)
		}
	}
}

func TestSettingsReportEveryProblem(t *testing.T) {
	err := Settings{
		ExemptDigests:     true,
		AllowedRegistries: []string{"", "https://a.example.com", "a.example.com/*", "a.example.com/b:1", "nginx", "a:x", "a.example.com//b", "ok.example.com", "ok.example.com"},
		ExemptImages:      []string{"a.example.com@sha256:b"},
		ExemptNamespaces:  []string{"No", "a", "a"},
	}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"exemptDigests", "allowedRegistries[0]: Invalid value: \"\": it is empty", "allowedRegistries[1]: Invalid value: \"https://a.example.com\": leave out the scheme",
		"allowedRegistries[2]", "allowedRegistries[3]", "allowedRegistries[4]: Invalid value: \"nginx\": begin with the registry", "allowedRegistries[5]",
		"allowedRegistries[6]", "allowedRegistries[8]: Duplicate value: \"ok.example.com\"", "exemptImages[0]", "exemptNamespaces[0]", "exemptNamespaces[2]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if err := (Settings{}).Validate(); err == nil || !strings.Contains(err.Error(), "nothing is asked") {
		t.Errorf("settings that ask nothing: %v", err)
	}
	if _, err := New(Settings{}); err == nil {
		t.Error("New takes invalid settings")
	}
}

func TestObjectsThatAreNoPodsAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing": "", "an array": "[1]", "an invalid spec": `{"spec":1}`, "an invalid container": `{"spec":{"containers":["canary"]}}`,
		"containers that are not a list": `{"spec":{"containers":{}}}`, "invalid metadata": `{"metadata":"canary","spec":{}}`,
		"an invalid volume": `{"spec":{"volumes":[1]}}`, "an invalid image volume": `{"spec":{"volumes":[{"image":"canary"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, webhook := range newWebhooks(t, nil, nil) {
				resp := cases.Handle(t, webhook, &admissionv1.AdmissionRequest{
					Resource: podResource, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
				})
				if resp.Allowed || resp.Status.Code != 400 || strings.Contains(resp.Status.Message, "canary") {
					t.Errorf("%s: %+v", webhook.Name, resp.Status)
				}
			}
		})
	}
	for _, webhook := range newWebhooks(t, nil, nil) {
		if resp := cases.Handle(t, webhook, &admissionv1.AdmissionRequest{Resource: metav1.GroupVersionResource{Version: "v1", Resource: "services"}}); resp.Allowed {
			t.Errorf("%s answers for services", webhook.Name)
		}
		if resp := cases.Handle(t, webhook, &admissionv1.AdmissionRequest{
			Resource: podResource, Operation: admissionv1.Update, SubResource: ephemeralContainers,
			Object: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)},
		}); resp.Allowed {
			t.Errorf("%s takes an update without an old object", webhook.Name)
		}
	}
}

// For any pod, the result of the mutating webhook passes the validating one, and other
// fields stay unchanged.
func TestWhatIsSetPasses(t *testing.T) {
	webhooks := newWebhooks(t, nil, nil)
	rapid.Check(t, func(r *rapid.T) {
		policies := rapid.SampledFrom([]string{"", `"imagePullPolicy":null,`, `"imagePullPolicy":"Always",`, `"imagePullPolicy":"IfNotPresent",`, `"imagePullPolicy":7,`})
		var raw strings.Builder
		raw.WriteString(`{"metadata":{"generateName":"p-"},"spec":{`)
		for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
			raw.WriteString(`"` + list + `":[`)
			for i := range rapid.IntRange(0, 3).Draw(r, list) {
				if i > 0 {
					raw.WriteByte(',')
				}
				raw.WriteString(`{` + policies.Draw(r, "policy") + `"image":"a/b","n":9007199254740993}`)
			}
			raw.WriteString(`],`)
		}
		raw.WriteString(`"x":1}}`)
		req := &admissionv1.AdmissionRequest{Resource: podResource, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw.String())}}
		after, _, denied := cases.Review(t, webhooks, req)
		if denied != nil {
			r.Fatalf("denied: %s\n%s", denied.Message, raw.String())
		}
		if n := strings.Count(string(after), "Always"); n != strings.Count(raw.String(), `"image"`) || strings.Count(string(after), "9007199254740993") != n {
			r.Fatalf("%s\n%s", raw.String(), after)
		}
		req.Object.Raw = after
		if again, _, _ := cases.Review(t, webhooks, req); !bytes.Equal(again, after) {
			r.Fatalf("the second pass changes %s to %s", after, again)
		}
	})
}

// FuzzPod sends any valid JSON as a pod to both webhooks.
func FuzzPod(f *testing.F) {
	for _, c := range cases.All(f) {
		f.Add(c.Request(f, podResource).Object.Raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsontext.Value(raw).IsValid() { // the wire lets nothing else through
			return
		}
		webhooks := newWebhooks(t, []byte("forbidLatest: true\nallowedRegistries: [docker.io]"), nil)
		req := &admissionv1.AdmissionRequest{Resource: podResource, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}}
		after, _, denied := cases.Review(t, webhooks, req)
		if denied != nil {
			return
		}
		req.Object.Raw = after
		if again, _, denied := cases.Review(t, webhooks, req); denied != nil || !bytes.Equal(again, after) {
			t.Fatalf("the second pass is not empty: %s", again)
		}
	})
}
