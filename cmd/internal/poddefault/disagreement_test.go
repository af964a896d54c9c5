// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

func TestDisagreementNamesBothAndThePlaceAndTheRemedy(t *testing.T) {
	for name, test := range map[string]struct{ a, b, want string }{
		"without a policy": {
			"{metadata: {name: a}, spec: {selector: {}, env: [{name: HTTP_PROXY, value: x}]}}",
			"{metadata: {name: b}, spec: {selector: {}, env: [{name: HTTP_PROXY, value: y}]}}",
			"PodDefaults a and b both set env HTTP_PROXY; pods selected by both are denied. Change one selector, or set spec.conflictPolicy of b"},
		"in the order of application": {
			"{metadata: {name: a}, spec: {selector: {}, priority: 1, env: [{name: X, value: x}], annotations: {note: x}, labels: {l: x}}}",
			"{metadata: {name: b}, spec: {selector: {}, conflictPolicy: Skip, env: [{name: X, value: y}], annotations: {note: y}, labels: {l: y}}}",
			"PodDefaults b and a both set annotation note, env X and 1 more; pods selected by both are denied. Change one selector, or set spec.conflictPolicy of a"},
		"with a policy that settles it": {
			"{metadata: {name: a}, spec: {selector: {}, env: [{name: X, value: x}]}}",
			"{metadata: {name: b}, spec: {selector: {}, conflictPolicy: Override, env: [{name: X, value: y}]}}",
			"PodDefaults a and b both set env X; of pods selected by both the conflictPolicy Override of b decides"},
		"over a field that one of them wins": {
			"{metadata: {name: a}, spec: {selector: {}, serviceAccountName: x, command: [x]}}",
			"{metadata: {name: b}, spec: {selector: {}, serviceAccountName: y, command: [y]}}",
			"PodDefaults a and b both set command, serviceAccountName; pods selected by both get one of them, with a warning. " +
				"Change one selector, or set spec.conflictPolicy of b"},
		"of one that is not applied": {
			"{metadata: {name: a}, spec: {selector: {}, mode: Audit, env: [{name: X, value: x}]}}",
			"{metadata: {name: b}, spec: {selector: {}, env: [{name: X, value: y}]}}",
			"PodDefaults a and b both set env X; pods selected by both would be denied if none was in mode Audit. " +
				"Change one selector, or set spec.conflictPolicy of b"},
	} {
		t.Run(name, func(t *testing.T) {
			pds := podtest.PodDefaults(t, []byte(test.a+"\n---\n"+test.b))
			a, b := plan.Compile(pds[0]), plan.Compile(pds[1])
			if got := compare.Disagreement(a, b, compare.OfPlans(a, b), 2); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if got := compare.Disagreement(b, a, compare.OfPlans(b, a), 2); got != test.want {
				t.Errorf("the other way round: got  %s\nwant %s", got, test.want)
			}
		})
	}
	cluster := plan.CompileCluster(parseClusterPodDefault(t, "{metadata: {name: all}, spec: {selector: {}, env: [{name: X, value: x}]}}"))
	own := plan.Compile(podtest.PodDefaults(t, []byte("{metadata: {name: own}, spec: {selector: {}, env: [{name: X, value: y}]}}"))[0])
	want := "ClusterPodDefault all and PodDefault team-a/own both set env X; pods selected by both are denied. Change one selector, or set spec.conflictPolicy of own"
	if got := compare.Disagreement(own, cluster, compare.OfPlans(own, cluster), 2); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
