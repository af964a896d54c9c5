// SPDX-License-Identifier: Apache-2.0

package servicetype

import (
	"slices"
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

func TestCases(t *testing.T) { cases.Run(t, serviceResource, newWebhooks) }

func TestDefinitionIsValid(t *testing.T) {
	for settings, want := range map[string]string{
		"{}":                       "(has(object.spec.type) && object.spec.type in ['LoadBalancer', 'NodePort', 'ExternalName']) || (has(object.spec.externalIPs) && object.spec.externalIPs.size() > 0)",
		"forbidden: [NodePort]":    "(has(object.spec.type) && object.spec.type in ['NodePort'])",
		"forbidden: [ExternalIPs]": "(has(object.spec.externalIPs) && object.spec.externalIPs.size() > 0)",
	} {
		webhook := newWebhooks(t, []byte(settings), nil)[0]
		if err := webhook.Problems(); err != nil {
			t.Error(err)
		}
		if got := webhook.MatchConditions[0].Expression; got != want {
			t.Errorf("%s: the condition is %s", settings, got)
		}
	}
}

func TestSettingsReportEveryProblem(t *testing.T) {
	err := Settings{
		Forbidden: []Feature{"loadbalancer", NodePort, NodePort},
		Exceptions: []Exception{
			{},
			{Features: []Feature{ExternalIPs}, Namespaces: []string{"No", "a", "a"}},
			{Labels: map[string]string{"a b": "c", "d": "e f"}, LoadBalancerClasses: []string{"x y"}},
		},
	}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`forbidden[0]: Unsupported value: "loadbalancer": supported values: "LoadBalancer"`, `forbidden[2]: Duplicate value: "NodePort"`, "exceptions[0]: Required value: it has no condition",
		`exceptions[1].features[0]: Invalid value: "ExternalIPs": it is not forbidden`, `exceptions[1].namespaces[0]: Invalid value: "No"`, "exceptions[1].namespaces[2]",
		`exceptions[2].labels: Invalid value: "a b"`, "exceptions[2].labels[d]", `exceptions[2].loadBalancerClasses[0]`, "exceptions[2].loadBalancerClasses: Forbidden: only",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if _, err := New(Settings{}); err == nil {
		t.Error("New takes settings that forbid nothing")
	}
}

func TestObjectsThatAreNoServicesAreRefused(t *testing.T) {
	webhook := newWebhooks(t, nil, nil)[0]
	for name, raw := range map[string]string{
		"nothing": "", "an array": "[1]", "an invalid spec": `{"spec":"canary"}`, "invalid metadata": `{"metadata":1,"spec":{}}`,
		"external IPs that are not a list": `{"spec":{"externalIPs":"canary"}}`, "an invalid external IP": `{"spec":{"externalIPs":[7]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, req := range []*admissionv1.AdmissionRequest{
				{Resource: serviceResource, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)}},
				{Resource: serviceResource, Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, OldObject: runtime.RawExtension{Raw: []byte(raw)}},
			} {
				resp := cases.Handle(t, webhook, req)
				if resp.Allowed || resp.Status.Code != 400 || strings.Contains(resp.Status.Message, "canary") {
					t.Errorf("%s: %+v", req.Operation, resp.Status)
				}
			}
		})
	}
	if resp := cases.Handle(t, webhook, &admissionv1.AdmissionRequest{Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}}); resp.Allowed {
		t.Error("it answers for pods")
	}
}

// Existing features of a Service are never refused, whatever the settings.
func TestAServiceMayStayWhatItIs(t *testing.T) {
	webhook := newWebhooks(t, nil, nil)[0]
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom([]string{`"LoadBalancer"`, `"NodePort"`, `"ExternalName"`, `"ClusterIP"`, `""`, `null`}).Draw(r, "type")
		ips := rapid.SliceOfN(rapid.SampledFrom([]string{`"192.0.2.1"`, `"192.0.2.2"`, `"2001:db8::1"`}), 0, 4).Draw(r, "ips")
		raw := `{"metadata":{"name":"s"},"spec":{"type":` + kind + `,"externalIPs":[` + strings.Join(ips, ",") + `]}}`
		req := &admissionv1.AdmissionRequest{
			Resource: serviceResource, Operation: admissionv1.Update,
			Object: runtime.RawExtension{Raw: []byte(raw)}, OldObject: runtime.RawExtension{Raw: []byte(raw)},
		}
		if resp := cases.Handle(t, webhook, req); !resp.Allowed {
			r.Fatalf("%s: %s", raw, resp.Status.Message)
		}
		req.Operation, req.OldObject.Raw = admissionv1.Create, nil
		forbidden := len(ips) > 0 || !slices.Contains([]string{`"ClusterIP"`, `""`, `null`}, kind)
		if resp := cases.Handle(t, webhook, req); resp.Allowed == forbidden {
			r.Fatalf("%s is admitted: %v", raw, resp.Allowed)
		}
	})
}

// FuzzService sends any valid JSON as both objects of an update.
func FuzzService(f *testing.F) {
	for _, c := range cases.All(f) {
		raw := c.Request(f, serviceResource)
		f.Add(raw.Object.Raw, raw.OldObject.Raw)
	}
	f.Fuzz(func(t *testing.T, raw, old []byte) {
		if !jsontext.Value(raw).IsValid() || !jsontext.Value(old).IsValid() { // the wire lets nothing else through
			return
		}
		webhook := newWebhooks(t, []byte("exceptions: [{labels: {a: b}}]"), nil)[0]
		req := &admissionv1.AdmissionRequest{
			Resource: serviceResource, Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: raw}, OldObject: runtime.RawExtension{Raw: old},
		}
		changed := cases.Handle(t, webhook, req)
		req.OldObject.Raw = raw
		if same := cases.Handle(t, webhook, req); changed.Allowed && !same.Allowed {
			t.Fatalf("what was admitted may not stay: %s", same.Status.Message)
		}
	})
}
