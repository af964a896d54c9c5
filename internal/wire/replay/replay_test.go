// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// annotate returns a webhook that adds an annotation to objects that contain all of the texts.
func annotate(key string, policy admissionregistrationv1.ReinvocationPolicyType, after ...string) admission.Webhook {
	return admission.Mutating(key+".example.com", admission.Rules(widgets), admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		raw := string(req.Object.Raw)
		if strings.Contains(raw, `"`+key+`"`) || slices.ContainsFunc(after, func(text string) bool { return !strings.Contains(raw, text) }) {
			return admission.Allowed(), nil
		}
		builder := jsonpatch.NewBuilder(req.Object.Raw)
		builder.Set([]byte(`"x"`), "metadata", "annotations", key)
		patch, err := builder.Patch()
		return admission.Patched(patch), err
	}), func(w *admission.Webhook) { w.ReinvocationPolicy = policy })
}

func refuse(name string, text string) admission.Webhook {
	return admission.Validating(name+".example.com", admission.Rules(widgets), admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		if strings.Contains(string(req.Object.Raw), text) {
			return admission.DeniedResponse(name + " refuses it"), nil
		}
		resp := admission.Allowed()
		resp.Warnings = []string{"heed this"}
		return resp, nil
	}))
}

func review(change ...func(*admissionv1.AdmissionRequest)) replay.Review {
	req := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"widget-1"}}`)},
	}
	for _, c := range change {
		c(req)
	}
	replay.Complete(req)
	return replay.Review{Request: req}
}

const (
	never    = admissionregistrationv1.NeverReinvocationPolicy
	ifNeeded = admissionregistrationv1.IfNeededReinvocationPolicy
)

func TestWebhooksAreAskedInTheOrderOfTheAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		webhooks []admission.Webhook
		want     string // "<webhook>[!][+]", ! for a second call, + for a patch
		denied   string
	}{
		"each on what the one before left":                      {[]admission.Webhook{annotate("a", never), annotate("b", never, `"a"`)}, "a+ b+", ""},
		"those that validate come last":                         {[]admission.Webhook{refuse("v", `"a"`), annotate("a", never)}, "a+ v", "v refuses it"},
		"a denial ends it":                                      {[]admission.Webhook{refuse("v", "Widget"), refuse("w", "Widget")}, "v", "v refuses it"},
		"one that wants it is asked again after a change":       {[]admission.Webhook{annotate("a", ifNeeded, `"b"`), annotate("b", never)}, "a b+ a!+", ""},
		"one that never wants it is not":                        {[]admission.Webhook{annotate("a", never, `"b"`), annotate("b", never)}, "a b+", ""},
		"its own change is no reason":                           {[]admission.Webhook{annotate("b", never), annotate("a", ifNeeded)}, "b+ a+", ""},
		"nor is one before it":                                  {[]admission.Webhook{annotate("b", ifNeeded), annotate("a", ifNeeded, "not there")}, "b+ a", ""},
		"a change in the second round reaches those behind":     {[]admission.Webhook{annotate("a", ifNeeded, `"b"`), annotate("b", ifNeeded), annotate("c", ifNeeded, `"a"`)}, "a b+ c a!+ b! c!+", ""},
		"there is no third round":                               {[]admission.Webhook{annotate("a", ifNeeded, `"c"`), annotate("b", ifNeeded), annotate("c", ifNeeded, `"b"`, `"d"`), annotate("d", ifNeeded)}, "a b+ c d+ a! b! c!+ d!", ""},
		"who validates sees what came of the second round":      {[]admission.Webhook{annotate("a", ifNeeded, `"b"`), refuse("v", `"a"`), annotate("b", never)}, "a b+ a!+ v", "v refuses it"},
		"a webhook whose rules do not cover it is not asked":    {[]admission.Webhook{admission.Mutating("a.example.com", admission.Rules(widgets, admissionregistrationv1.Delete), annotate("a", never).Handler)}, "", ""},
		"a webhook for cluster-scoped things sees one of those": {[]admission.Webhook{scoped(annotate("a", never), admissionregistrationv1.ClusterScope)}, "a+", ""},
		"a webhook for namespaced things does not":              {[]admission.Webhook{scoped(annotate("a", never), admissionregistrationv1.NamespacedScope)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := review().Run(t.Context(), tc.webhooks)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			after := result.Before
			for _, call := range result.Calls {
				text := strings.TrimSuffix(call.Webhook, ".example.com")
				if call.Again {
					text += "!"
				}
				if call.Patch != nil {
					text += "+"
					if after, err = replay.Apply(after, call.Patch); err != nil {
						t.Fatal(err)
					}
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("called %s, want %s", strings.Join(got, " "), tc.want)
			}
			if string(after) != string(result.After) {
				t.Errorf("the patches make %s, the result is %s", after, result.After)
			}
			denied := ""
			if result.Denied != nil {
				denied = result.Denied.Message
			}
			if denied != tc.denied || (denied != "") != (result.DeniedBy != "") {
				t.Errorf("denied with %q by %q, want %q", denied, result.DeniedBy, tc.denied)
			}
		})
	}
}

func scoped(w admission.Webhook, scope admissionregistrationv1.ScopeType) admission.Webhook {
	w.Rules[0].Scope = &scope
	return w
}

func TestAWarningIsShownOnce(t *testing.T) {
	result, err := review().Run(t.Context(), []admission.Webhook{refuse("v", "nothing"), refuse("w", "nothing")})
	if err != nil || !slices.Equal(result.Warnings, []string{"heed this"}) || len(result.Calls) != 2 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestFaultsNameTheWebhook(t *testing.T) {
	beta := schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}
	handler := func(f func(req *admissionv1.AdmissionRequest) error) admission.Webhook {
		return admission.Mutating("fault.example.com", admission.Rules(widgets), admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
			return admission.Allowed(), f(req)
		}))
	}
	for name, tc := range map[string]struct {
		webhook admission.Webhook
		want    string
	}{
		"a fault of the handler":                  {handler(func(*admissionv1.AdmissionRequest) error { return errors.New("the cache is lost") }), "webhook fault.example.com: the cache is lost"},
		"a handler that writes into the request":  {handler(func(req *admissionv1.AdmissionRequest) error { req.Object.Raw[1] = 'x'; return nil }), "webhook fault.example.com: it writes into the bytes of the request"},
		"a definition that is not valid":          {admission.Webhook{Name: "fault.example.com", Rules: admission.Rules(widgets)}, "webhook fault.example.com: "},
		"a version that it would be converted to": {admission.Mutating("fault.example.com", admission.Rules(beta), annotate("a", never).Handler), "webhook fault.example.com: the API server would convert the object to example.com/v1beta1 for it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := review()
			r.Equivalents = []schema.GroupVersionResource{beta}
			if _, err := r.Run(t.Context(), []admission.Webhook{tc.webhook}); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestARecordedRequestKeepsItsVersion: if the API server converted the request for a webhook,
// the recording has only the converted object.
func TestARecordedRequestKeepsItsVersion(t *testing.T) {
	r := review(func(req *admissionv1.AdmissionRequest) {
		req.RequestResource = &metav1.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}
	})
	both := annotate("a", never)
	both.Rules[0].APIVersions = []string{"v1beta1", "v1"}
	exact := annotate("a", never)
	exact.MatchPolicy = admissionregistrationv1.Exact
	for name, tc := range map[string]struct {
		webhook admission.Webhook
		want    int
	}{
		"a webhook for the version that was sent": {annotate("a", never), 1},
		"one for both":                       {both, 1},
		"one for exactly what was asked for": {exact, 0},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := r.Run(t.Context(), []admission.Webhook{tc.webhook})
			if err != nil || len(result.Calls) != tc.want {
				t.Errorf("%d calls, want %d (%v)", len(result.Calls), tc.want, err)
			}
		})
	}
}

func TestTheUIDOfARequestFollowsFromItsObject(t *testing.T) {
	uid := func(r replay.Review) string {
		result, err := r.Run(t.Context(), []admission.Webhook{annotate("a", never)})
		if err != nil {
			t.Fatal(err)
		}
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(result.Calls[0].Answer, &answer); err != nil || answer.APIVersion != "admission.k8s.io/v1" {
			t.Fatalf("%v: %s", err, result.Calls[0].Answer)
		}
		return string(answer.Response.UID)
	}
	if a, b := uid(review()), uid(review()); a != b || len(a) != 36 {
		t.Errorf("%q and %q", a, b)
	}
	if got := uid(review(func(req *admissionv1.AdmissionRequest) { req.UID = "recorded" })); got != "recorded" {
		t.Errorf("got %q", got)
	}
}
