// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// TestTheAPIServerHasTheLastWordAboutWhatTheStepsAllow answers for the API server. What it says itself is asked in
// TestPodsOnARealAPIServer of cmd/test/deceiving.
func TestTheAPIServerHasTheLastWordAboutWhatTheStepsAllow(t *testing.T) {
	refuses := &dryrun.Answer{Verdict: dryrun.Refused, Status: &metav1.Status{Message: "exceeded quota"}}
	byPolicy := &dryrun.Answer{Verdict: dryrun.Refused, Status: &metav1.Status{Message: "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no dry runs"}}
	const reads = "{expression: '!request.dryRun'}"
	for name, tc := range map[string]struct {
		validation string
		answer     *dryrun.Answer
		asked      bool
		denied     string
		unknown    string
	}{
		"it accepts":         {"{expression: 'true'}", &dryrun.Answer{Verdict: dryrun.Accepted}, true, "", ""},
		"it refuses":         {"{expression: 'true'}", refuses, true, "exceeded quota", ""},
		"it cannot be asked": {"{expression: 'true'}", &dryrun.Answer{Verdict: dryrun.Unknown, Reason: "no right"}, true, "", "no right"},
		"a step refuses":     {"{expression: 'false', message: never}", &dryrun.Answer{Verdict: dryrun.Accepted}, false, "never", ""},
		"it refuses, and a policy reads the dry run":    {reads, refuses, true, "", "exceeded quota"},
		"a policy refuses the dry run because it reads": {reads, byPolicy, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects, _, err := manifest.Parse("policies.yaml", []byte(team+validating("p", tc.validation, "", "")))
			if err != nil {
				t.Fatal(err)
			}
			asked := false
			got, err := run(t, objects, pod, func(r *chain.Run) {
				r.DryRun = func(context.Context, *admissionv1.AdmissionRequest) (*dryrun.Answer, error) {
					asked = true
					return tc.answer, nil
				}
			}).Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			denied := ""
			if got.Denied != nil {
				denied = got.Denied.Message
			}
			unknown := strings.Join(got.Unknown, "; ")
			if asked != tc.asked || !strings.Contains(denied, tc.denied) || (denied == "") != (tc.denied == "") || !strings.Contains(unknown, tc.unknown) || (unknown == "") != (tc.unknown == "") {
				t.Errorf("asked %v, denied %q, unknown %q", asked, denied, unknown)
			}
		})
	}
}
