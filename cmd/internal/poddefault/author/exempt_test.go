// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
)

// exempters lists what the user may exempt from: "resource namespace/name".
type exempters struct {
	may   []string
	err   error
	asked []string
}

func (x *exempters) May(_ context.Context, _ *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (bool, string, error) {
	what := access.Resource + "." + access.Group + " " + access.Namespace + "/" + access.Name
	if access.Verb != exempt.Verb {
		what = "verb " + access.Verb
	}
	x.asked = append(x.asked, what)
	return slices.Contains(x.may, what), "no role says so", x.err
}

// exemptRequest is for Exemptions of specs: UNTIL OBJECTS WORKLOADS REASON.
func exemptRequest(t *testing.T, operation admissionv1.Operation, now, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	raw := func(spec string) runtime.RawExtension {
		e := &sallyportv1alpha1.Exemption{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "team-a"}}
		if fields := strings.Fields(spec); len(fields) == 4 {
			until, err := time.Parse(time.RFC3339, fields[0])
			if err != nil {
				t.Fatal(err)
			}
			e.Spec = sallyportv1alpha1.ExemptionSpec{Until: metav1.Time{Time: until}, PodDefaults: strings.Split(fields[1], ","), Workloads: strings.Split(fields[2], ","), Reason: fields[3]}
		}
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: out}
	}
	req := &admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Kind: metav1.GroupVersionKind(sallyportv1alpha1.Kind(sallyportv1alpha1.ExemptionKind)),
		Resource: metav1.GroupVersionResource(exemptions), Name: "e", Namespace: "team-a",
		UserInfo: authenticationv1.UserInfo{Username: "alice"}, Object: raw(now),
	}
	if operation == admissionv1.Update {
		req.OldObject = raw(old)
	}
	return req
}

func handleExemption(t *testing.T, x *exempters, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	t.Helper()
	webhook, err := NewExempt(x, 24*time.Hour)
	if err == nil {
		err = webhook.Problems()
	}
	if err != nil {
		t.Fatal(err)
	}
	webhook.Handler.(*exemptHandler).now = func() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }
	return webhook.Handler.Handle(t.Context(), req)
}

func TestWhoMayExempt(t *testing.T) {
	const (
		proxy = "poddefaults.kubeflow.org team-a/proxy"
		audit = "clusterpoddefaults.sallyport.io /audit"
		at13  = "2026-06-01T13:00:00Z "
		at14  = "2026-06-01T14:00:00Z "
		past  = "2026-06-01T12:00:00Z "
	)
	for name, tc := range map[string]struct {
		value, old string
		may        []string
		asked      string // with commas
		says       string // empty: it is allowed
	}{
		"who may exempt from it may":                              {at13 + "proxy * x", "", []string{proxy}, proxy, ""},
		"who may not is refused, with the way to find out":        {at13 + "proxy * x", "", nil, proxy, `"alice" may not exempt pods from poddefaults.kubeflow.org/proxy; ask for the verb exempt on it (kubectl auth can-i exempt poddefaults.kubeflow.org/proxy -n team-a), or ask a user who has it: no role says so`},
		"the cluster's objects are asked for without a namespace": {at13 + "cluster/audit * x", "", nil, audit, "can-i exempt clusterpoddefaults.sallyport.io/audit)"},
		"each object is asked for once":                           {at13 + "proxy,cluster/audit * x", "", []string{proxy, audit}, audit + "," + proxy, ""},
		"one right of two is not enough":                          {at13 + "proxy,cluster/audit * x", "", []string{audit}, audit + "," + proxy, "poddefaults.kubeflow.org/proxy"},
		"one that stays":                                          {at13 + "proxy * x", at13 + "proxy * x", nil, "", ""},
		"one that has ended stays":                                {past + "proxy * x", past + "proxy * x", nil, "", ""},
		"another object beside it":                                {at13 + "proxy,cluster/audit * x", at13 + "proxy * x", []string{audit}, audit, ""},
		"an earlier end":                                          {at13 + "proxy * x", at14 + "proxy * x", nil, "", ""},
		"an earlier end, in the past":                             {past + "proxy * x", at14 + "proxy * x", nil, "", ""},
		"a later end":                                             {at14 + "proxy * x", at13 + "proxy * x", nil, proxy, "may not exempt"},
		"one workload instead of all":                             {at13 + "proxy Deployment/web x", at13 + "proxy * x", nil, "", ""},
		"all workloads instead of one":                            {at13 + "proxy * x", at13 + "proxy Deployment/web x", nil, proxy, "may not exempt"},
		"another workload":                                        {at13 + "proxy Deployment/api x", at13 + "proxy Deployment/web x", nil, proxy, "may not exempt"},
		"fewer objects":                                           {at13 + "proxy * x", at13 + "proxy,cluster/audit * x", nil, "", ""},
		"another object":                                          {at13 + "cluster/audit * x", at13 + "proxy * x", nil, audit, "may not exempt"},
		"another reason":                                          {at13 + "proxy * y", at13 + "proxy * x", nil, proxy, "may not exempt"},
		"one that was invalid exempted nothing":                   {at13 + "proxy * x", at13 + "proxy web x", nil, proxy, "may not exempt"},
		"what cannot be read":                                     {at13 + "proxy web x", "", []string{proxy}, "", "Exemption team-a/e: spec.workloads[0] must be * or KIND/NAME"},
		"a time that has passed":                                  {past + "proxy * x", "", []string{proxy}, "", "Exemption team-a/e: spec.until: it has passed: give a time in the future"},
		"a time at the limit":                                     {"2026-06-02T12:00:00Z proxy * x", "", []string{proxy}, proxy, ""},
		"a time beyond the limit":                                 {"2026-06-02T12:00:01Z proxy * x", "", []string{proxy}, "", "is more than 24h0m0s from now"},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admissionv1.Update
			if tc.old == "" {
				operation = admissionv1.Create
			}
			x := &exempters{may: tc.may}
			resp, err := handleExemption(t, x, exemptRequest(t, operation, tc.value, tc.old))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(x.asked, ","); got != tc.asked {
				t.Errorf("asked %q, want %q", got, tc.asked)
			}
			if resp.Allowed != (tc.says == "") || !resp.Allowed && !strings.Contains(resp.Status.Message, tc.says) {
				t.Errorf("allowed %t, %+v; want %q", resp.Allowed, resp.Status, tc.says)
			}
		})
	}
	t.Run("a fault is not a decision", func(t *testing.T) {
		if _, err := handleExemption(t, &exempters{err: errors.New("away")}, exemptRequest(t, admissionv1.Create, at13+"proxy * x", "")); err == nil {
			t.Error("a decision without an answer")
		}
	})
	t.Run("requests for others", func(t *testing.T) {
		req := exemptRequest(t, admissionv1.Create, at13+"proxy * x", "")
		req.Resource.Resource = "pods"
		if resp, err := handleExemption(t, &exempters{}, req); err != nil || resp.Allowed || !strings.Contains(resp.Status.Message, "correct the rules") {
			t.Errorf("%+v, %v", resp, err)
		}
		req = exemptRequest(t, admissionv1.Create, "", "")
		req.Object.Raw = []byte("[]")
		if resp, err := handleExemption(t, &exempters{}, req); err != nil || resp.Allowed {
			t.Errorf("%+v, %v", resp, err)
		}
	})
	if _, err := NewExempt(nil, time.Hour); err == nil {
		t.Error("a webhook without an authorizer")
	}
}
