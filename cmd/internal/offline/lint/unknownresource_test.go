// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"testing"
)

// TestACustomResourceThatIsAskedForBesideOthersMayBeOptional has a cluster with PodDefaults and without Notebooks.
func TestACustomResourceThatIsAskedForBesideOthersMayBeOptional(t *testing.T) {
	known := &Resources{ByGroup: map[string][]string{"": {"pods"}, "apps": {"deployments"}, "batch": {"jobs"}, "kubeflow.org": {"poddefaults"}}, Complete: true}
	const notebooks, deployments = "{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [notebooks]}",
		"{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}"
	for rules, want := range map[string]Severity{
		notebooks + ", " + deployments: Info,
		notebooks:                      Error, // it is never called
		"{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [job]}, " + deployments: Error, // of Kubernetes itself
	} {
		in, err := ReadFiles(objects(t, "w.yaml", fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: check.hooks.example.com
  clientConfig: {service: {namespace: hooks-system, name: webhooks}}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [%s]
`, rules)))
		if err != nil {
			t.Fatal(err)
		}
		found := Run(in, Options{Resources: known}).Findings
		found = slices.DeleteFunc(found, func(f Finding) bool { return f.Rule != "unknown-resource" })
		if len(found) != 1 || found[0].Severity != want {
			t.Errorf("%s: %+v, want one of %s", rules, found, want)
		}
	}
}
