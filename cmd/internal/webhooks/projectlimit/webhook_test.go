// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/test/cases"
)

func newWebhooks(t testing.TB, settings, cluster []byte) []admission.Webhook {
	t.Helper()
	s := DefaultSettings()
	if err := yaml.UnmarshalStrict(settings, &s); err != nil {
		t.Fatal(err)
	}
	var namespaces []metav1.PartialObjectMetadata
	if err := yaml.UnmarshalStrict(cluster, &namespaces); err != nil {
		t.Fatal(err)
	}
	index := NewIndex()
	for i := range namespaces {
		index.Set(ProjectOf(&namespaces[i]))
	}
	webhooks, err := New(index, s)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks
}

func TestCases(t *testing.T) { cases.Run(t, namespaceResource, newWebhooks) }

func TestDefinitionsAreValid(t *testing.T) {
	for _, webhook := range newWebhooks(t, []byte("exemptUsers: [\"o'brien\", 'a\"b']"), nil) {
		if err := webhook.Problems(); err != nil {
			t.Error(err)
		}
		if got, want := webhook.MatchConditions[0].Expression, `!(request.userInfo.username in ["o'brien", "a\"b"])`; got != want {
			t.Errorf("the condition is %s", got)
		}
	}
	if conditions := newWebhooks(t, []byte("exemptUsers: []\nexemptGroups: []"), nil)[0].MatchConditions; len(conditions) > 0 {
		t.Errorf("conditions without exempt accounts: %v", conditions)
	}
}

func TestSettingsReportEveryProblem(t *testing.T) {
	settings := Settings{
		Limit: -1,
		Limits: []Limit{
			{Limit: 1}, {User: "a", Group: "b"}, {User: "a", Limit: -1}, {User: "a"}, {User: "root"}, {Group: "masters"},
		},
		ExemptUsers:  []string{"", "root", "root"},
		ExemptGroups: []string{"masters", ""},
	}
	err := settings.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"limit: Invalid value: -1", "limits[0]: Required value: it is for a user or a group", "limits[1]: Required value: it is for a user or a group", "limits[2].limit", `limits[3]: Invalid value: "a": has a limit already`,
		`limits[4]: Invalid value: "root": is exempt`, `limits[5]: Invalid value: "masters": is exempt`, "exemptUsers[0]", "exemptUsers[2]", "exemptGroups[1]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if _, err := New(nil, settings); err == nil || !strings.Contains(err.Error(), "no source") || !strings.Contains(err.Error(), "limit: Invalid value: -1") {
		t.Errorf("New reports %v", err)
	}
}

type failingSource struct{ err error }

func (s failingSource) Claim(context.Context, Claim) (int, bool, error) { return 0, false, s.err }

func TestSourceErrorIsAFaultAndNoDecision(t *testing.T) {
	cause := admission.Unavailable(errors.New("not synced"), time.Second)
	webhooks, err := New(failingSource{cause}, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhooks[1].Handler.Handle(t.Context(), request("alice", "new", admissionv1.Create))
	if resp != nil || !errors.Is(err, cause) {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestObjectsThatCannotBeReadAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing": "", "an array": "[1]", "invalid metadata": `{"metadata":"canary"}`, "invalid annotations": `{"metadata":{"annotations":"canary"}}`,
		"a stamp that is not text": `{"metadata":{"annotations":{"sallyport.io/requester":7}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			webhooks := newWebhooks(t, nil, nil)
			req := request("alice", "new", admissionv1.Create)
			req.Object.Raw = []byte(raw)
			update := request("alice", "new", admissionv1.Update)
			update.OldObject.Raw = []byte(raw)
			for _, resp := range []*admission.Response{cases.Handle(t, webhooks[0], req), cases.Handle(t, webhooks[1], req), cases.Handle(t, webhooks[1], update)} {
				if resp.Allowed || resp.Status.Code != 400 || strings.Contains(resp.Status.Message, "canary") {
					t.Errorf("got %+v", resp.Status)
				}
			}
		})
	}
	for _, webhook := range newWebhooks(t, nil, nil) {
		if resp := cases.Handle(t, webhook, &admissionv1.AdmissionRequest{Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}}); resp.Allowed {
			t.Errorf("%s answers for pods", webhook.Name)
		}
	}
}

func TestANamespaceThatWasNotStampedIsRefused(t *testing.T) {
	req := request("alice", "new", admissionv1.Create)
	req.Object.Raw = []byte(`{"metadata":{"name":"new"}}`)
	if resp := cases.Handle(t, newWebhooks(t, nil, nil)[1], req); resp.Allowed || !strings.Contains(resp.Status.Message, StampName) {
		t.Errorf("got %+v", resp.Status)
	}
}

// FuzzNamespace sends any valid JSON as a namespace to both webhooks. An admitted
// namespace names its requester and is not changed again.
func FuzzNamespace(f *testing.F) {
	for _, c := range cases.All(f) {
		f.Add(c.Request(f, namespaceResource).Object.Raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsontext.Value(raw).IsValid() { // the wire lets nothing else through
			return
		}
		webhooks := newWebhooks(t, nil, nil)
		req := request("alice", "", admissionv1.Create)
		req.Object.Raw = raw
		after, _, denied := cases.Review(t, webhooks, req)
		if denied != nil {
			return
		}
		if h, ok := readHeader(after); !ok || h.requester() != "alice" {
			t.Fatalf("it is %q who is named in %s", h.requester(), after)
		}
		req.Object.Raw = after
		if again, _, denied := cases.Review(t, webhooks, req); denied != nil || string(again) != string(after) {
			t.Fatalf("the second pass is not empty: %s", again)
		}
	})
}

// request returns a request for a stamped namespace.
func request(user, name string, operation admissionv1.Operation) *admissionv1.AdmissionRequest {
	raw := []byte(`{"metadata":{"name":"` + name + `","annotations":{"` + Annotation + `":"` + user + `"}}}`)
	req := &admissionv1.AdmissionRequest{
		UID: "1", Resource: namespaceResource, Operation: operation, Name: name,
		UserInfo: authenticationv1.UserInfo{Username: user}, Object: runtime.RawExtension{Raw: raw},
	}
	if operation == admissionv1.Update {
		req.OldObject.Raw = raw
	}
	return req
}
