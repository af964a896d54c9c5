// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// by returns a run with a single webhook, which answers by the pod's name.
func by(name string, answer func(pod string) (*admission.Response, error)) *review.Run {
	return &review.Run{
		Notes: os.Stderr, Validation: "strict", Namespace: "default",
		Webhooks: func(review.Sources) ([]admission.Webhook, error) {
			return []admission.Webhook{{
				Name: name + ".example.com", Path: "/x", Type: admission.TypeMutating,
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{"*"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}},
				Handler: admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
					return answer(req.Name)
				}),
			}}, nil
		},
	}
}

func allow(string) (*admission.Response, error) { return admission.Allowed(), nil }

func add(path, value string) *admission.Response {
	return admission.Patched(jsonpatch.Patch{{Op: "add", Path: path, Value: []byte(value)}})
}

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","namespace":"team-a"},"spec":{"containers":[{"name":"main","image":"x","env":[{"name":"A","value":"REDACTED"}]}]}}`

// recorded returns a line of a recording with a response or an error.
func recorded(webhook, name, response string) string {
	asked := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":%q,"namespace":"team-a","operation":"CREATE","userInfo":{},"object":%s}`,
		name, strings.ReplaceAll(pod, "NAME", name))
	if strings.HasPrefix(response, "{") {
		asked += `,"response":` + response
		response = ""
	}
	return fmt.Sprintf(`{"apiVersion":"test.sallyport.io/v1alpha1","kind":"RecordedReview","time":"2026-11-22T10:00:00.000000Z","webhook":%q,"error":%q,"review":%s}}`, webhook+".example.com", response, asked) + "\n"
}

func patched(patch string) string {
	return `{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(patch)) + `"}`
}

const allowedResponse, deniedResponse = `{"uid":"u","allowed":true}`, `{"uid":"u","allowed":false,"status":{"message":"pod web-1 is bad"}}`

// audited returns an audit event.
func audited(stage, verb, name, status string) string {
	return fmt.Sprintf(`{"apiVersion":"audit.k8s.io/v1","kind":"Event","level":"Request","auditID":"a","stage":%q,"requestURI":"/api/v1/namespaces/team-a/pods?dryRun=All","verb":%q,"user":{"username":"jane"},"objectRef":{"resource":"pods","namespace":"team-a","name":%q,"apiVersion":"v1"},"responseStatus":%s,"requestObject":%s}`,
		stage, verb, name, status, strings.ReplaceAll(pod, "NAME", name)) + "\n"
}

func replayed(t *testing.T, text string, now, before *review.Run) (*Result, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "reviews.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&Run{Files: []string{file}, Now: now, Before: before}).Do(t.Context())
}

func TestDifferences(t *testing.T) {
	deny := func(pod string) (*admission.Response, error) {
		return admission.DeniedResponse("pod " + pod + " is bad"), nil
	}
	for _, tc := range []struct {
		name, text string
		now        *review.Run
		want       []string // "count kind: detail"
	}{
		{"allowed as before", recorded("a", "web-1", allowedResponse), by("a", allow), nil},
		{"denied as before, with another name in the message", recorded("a", "web-1", deniedResponse), by("a", deny), nil},
		{"denied now, each with its name", recorded("a", "web-1", allowedResponse) + recorded("a", "web-2", allowedResponse), by("a", deny), []string{"2 is denied now: pod NAME is bad"}},
		{"allowed now", recorded("a", "web-1", deniedResponse), by("a", allow), []string{"1 is allowed now: pod NAME is bad"}},
		{"another message", recorded("a", "web-1", deniedResponse), by("a", func(string) (*admission.Response, error) { return admission.DeniedResponse("no"), nil }), []string{"1 is denied with another message: no"}},
		{"not asked", recorded("b", "web-1", allowedResponse), by("a", allow), []string{"1 is no longer called for: no webhook of this name is configured for such requests"}},
		{"fails now", recorded("a", "web-1", allowedResponse), by("a", func(string) (*admission.Response, error) { return nil, fmt.Errorf("broken") }), []string{"1 fails now: webhook a.example.com: broken"}},
		{"no longer fails", recorded("a", "web-1", "broken"), by("a", allow), []string{"1 no longer fails: broken"}},
		{
			"the same patch, of which a value was redacted", recorded("a", "web-1", patched(`[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"B","value":"REDACTED"}}]`)),
			by("a", func(string) (*admission.Response, error) {
				return add("/spec/containers/0/env/-", `{"name":"B","value":"x"}`), nil
			}), nil,
		},
		{
			"another patch", recorded("a", "web-1", patched(`[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"B","value":"REDACTED"}}]`)),
			by("a", func(string) (*admission.Response, error) {
				return add("/spec/containers/0/env/-", `{"name":"C","value":"x"}`), nil
			}), []string{"1 is changed differently: spec.containers[*].env[*].name"},
		},
		{"no patch any more", recorded("a", "web-1", patched(`[{"op":"add","path":"/spec/hostname","value":"x"}]`)), by("a", allow), []string{"1 is changed differently: spec.hostname"}},
		{"other warnings", recorded("a", "web-1", `{"uid":"u","allowed":true,"warnings":["old"]}`), by("a", func(string) (*admission.Response, error) {
			return &admission.Response{Allowed: true, Warnings: []string{"new"}}, nil
		}), []string{"1 has other warnings: now: new"}},
		{"an audit log, allowed then", audited("ResponseComplete", "create", "web-1", `{"code":201}`), by("a", deny), []string{"1 is denied now: pod NAME is bad"}},
		{"an audit log, denied then", audited("ResponseComplete", "create", "web-1", `{"code":403,"message":"admission webhook \"a.example.com\" denied the request: pod web-1 is bad"}`), by("a", allow), []string{"1 is allowed now: pod NAME is bad"}},
		{"an audit log, the same", audited("ResponseComplete", "create", "web-1", `{"code":201}`), by("a", func(string) (*admission.Response, error) { return add("/spec/hostname", `"x"`), nil }), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, err := replayed(t, tc.text, tc.now, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range result.Groups {
				got = append(got, fmt.Sprintf("%d %s: %s", g.Count, g.Kind, g.Detail))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if result.Replayed != strings.Count(tc.text, "\n") || result.Same+result.Different != result.Replayed {
				t.Errorf("got %+v", result)
			}
		})
	}
}

func TestTwoConfigurationsAreCompared(t *testing.T) {
	asked := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"web","operation":"CREATE","userInfo":{},"object":%s}}`, pod)
	hostname := func(value string) *review.Run {
		return by("a", func(string) (*admission.Response, error) { return add("/spec/hostname", value), nil })
	}
	result, err := replayed(t, asked, hostname(`"x"`), nil)
	if err != nil || result.Undecided != 1 || result.Replayed != 0 {
		t.Errorf("without a decision: %+v, %v", result, err)
	}
	if result, err = replayed(t, asked, hostname(`"x"`), hostname(`"x"`)); err != nil || result.Same != 1 {
		t.Errorf("the same: %+v, %v", result, err)
	}
	if result, err = replayed(t, asked, hostname(`"x"`), hostname(`"y"`)); err != nil || result.Different != 1 || result.Groups[0].Detail != "spec.hostname" {
		t.Errorf("another: %+v, %v", result, err)
	}
}

func TestWhatCannotBeReplayedIsCounted(t *testing.T) {
	text := audited("RequestReceived", "create", "a", "null") + audited("ResponseComplete", "patch", "a", `{"code":200}`) +
		audited("ResponseComplete", "create", "a", `{"code":409,"message":"exists"}`) + strings.ReplaceAll(audited("ResponseComplete", "create", "a", `{"code":201}`), `"requestObject"`, `"other"`) +
		strings.ReplaceAll(pod, "NAME", "x") + "\n" + recorded("a", "web-1", allowedResponse)
	result, err := replayed(t, text, by("a", allow), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{otherStage: 1, otherVerb: 1, notByAdmission: 1, withoutObject: 1, notARequest: 1}
	if diff := cmp.Diff(want, result.Skipped); diff != "" {
		t.Error(diff)
	}
	if result.Replayed != 1 {
		t.Errorf("got %+v", result)
	}
	var out strings.Builder
	if err := result.Print(&out); err != nil || !strings.Contains(out.String(), "1 request replayed: 1 decided as before, 0 differently\nnot replayed: 1 audit events of other stages") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if _, err := replayed(t, strings.ReplaceAll(pod, "NAME", "x"), by("a", allow), nil); err == nil || !strings.Contains(err.Error(), "there is nothing to replay") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCouldNotBeComparedIsNoGreen(t *testing.T) {
	service := strings.NewReplacer(`"pods"`, `"services"`, `"kind":"Pod"`, `"kind":"Service"`, "/pods?", "/services?")
	same := recorded("a", "web-1", allowedResponse)
	for name, tc := range map[string]struct {
		text      string
		complete  bool
		uncovered int
	}{
		"all is replayed":                    {same, true, 0},
		"one of two is an update":            {same + audited("ResponseComplete", "update", "a", `{"code":200}`), false, 0},
		"one of two has no decision":         {same + strings.Replace(same, `"response"`, `"other"`, 1), false, 0},
		"one of two is no request":           {same + strings.ReplaceAll(pod, "NAME", "x") + "\n", false, 0},
		"what reads has no admission":        {same + audited("ResponseComplete", "list", "a", `{"code":200}`), true, 0},
		"another stage has its request":      {same + audited("RequestReceived", "create", "a", "null"), true, 0},
		"no webhook is called for a Service": {same + service.Replace(audited("ResponseComplete", "create", "a", `{"code":201}`)), true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := replayed(t, tc.text, by("a", allow), nil)
			if err != nil || result.Complete() != tc.complete || result.Uncovered != tc.uncovered || result.Replayed != 1 || result.Same != 1 {
				t.Errorf("complete: %t, %+v, %v", result.Complete(), result, err)
			}
		})
	}
	if _, err := replayed(t, service.Replace(audited("ResponseComplete", "create", "a", `{"code":201}`)), by("a", allow), nil); err == nil || !strings.Contains(err.Error(), "there is nothing to replay: 1 requests that no webhook is called for") {
		t.Errorf("a Service alone: %v", err)
	}
	denied := service.Replace(audited("ResponseComplete", "create", "a", `{"code":403,"message":"admission webhook \"a.example.com\" denied the request: no"}`))
	if result, err := replayed(t, denied, by("a", allow), nil); err != nil || result.Different != 1 {
		t.Errorf("a Service that was refused: %+v, %v", result, err)
	}
}

func TestBrokenRecordsDoNotStopTheOthers(t *testing.T) {
	text := recorded("a", "web-1", patched(`[{"op":"remove","path":"/none"}]`)) + recorded("a", "web-2", allowedResponse) + `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`
	result, err := replayed(t, text, by("a", allow), nil)
	if err == nil || !strings.Contains(err.Error(), "response.patch") || !strings.Contains(err.Error(), "has no request") {
		t.Errorf("got %v", err)
	}
	if result == nil || result.Same != 1 {
		t.Errorf("got %+v", result)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(recorded("a", "web-1", deniedResponse))
	f.Add(audited("ResponseComplete", "create", "web-1", `{"code":201}`))
	f.Add(`{"apiVersion":"audit.k8s.io/v1","kind":"Event","stage":"ResponseComplete","verb":"create","objectRef":{},"requestObject":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := manifest.Parse("in.jsonl", []byte(text))
		if err != nil {
			return
		}
		for _, o := range objects {
			record, skipped, err := read(o)
			if record != nil && (skipped != "" || err != nil) || record == nil && skipped == "" && err == nil {
				t.Errorf("%v, %q, %v", record, skipped, err)
			}
		}
	})
}

// Records are replayed side by side, and counted in their order.
func TestManyRecordsHaveTheSameResultEachTime(t *testing.T) {
	var text strings.Builder
	for i := range 3 * batchSize {
		response := allowedResponse
		switch i % 3 {
		case 1:
			response = deniedResponse
		case 2:
			response = patched(`[{"op":"add","path":"/spec/hostname","value":"x"}]`)
		}
		text.WriteString(recorded("a", fmt.Sprintf("web-%d", i), response))
	}
	text.WriteString(recorded("a", "broken", patched(`[{"op":"remove","path":"/none"}]`)))
	var first *Result
	for range 3 {
		result, err := replayed(t, text.String(), by("a", func(string) (*admission.Response, error) { return add("/spec/hostname", `"x"`), nil }), nil)
		if err == nil || strings.Count(err.Error(), "response.patch") != 1 {
			t.Errorf("got %v", err)
		}
		for _, g := range result.Groups {
			for i := range g.Examples {
				g.Examples[i] = g.Examples[i][strings.LastIndex(g.Examples[i], "reviews.jsonl"):] // in another folder each time
			}
		}
		result.groups = nil
		if first == nil {
			first = result
		}
		if diff := cmp.Diff(first, result, cmp.AllowUnexported(Result{})); diff != "" {
			t.Error(diff)
		}
	}
	if first.Replayed != 3*batchSize || first.Same != batchSize || len(first.Groups) != 3 || // of those that were denied, one has its own name in the message
		first.Groups[0].Examples[0] != "reviews.jsonl:1: Pod team-a/web-0" {
		t.Errorf("got %+v, %+v", first, first.Groups)
	}
}
