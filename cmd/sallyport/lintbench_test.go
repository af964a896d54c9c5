// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// BenchmarkLint500Configurations runs the whole command on a file with 500 webhook
// configurations of two webhooks each, all with findings.
func BenchmarkLint500Configurations(b *testing.B) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "---\napiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration\nmetadata: {name: hooks-%d}\nwebhooks:\n",
			[]string{"Mutating", "Validating"}[i%2], i)
		for j := range 2 {
			fmt.Fprintf(&text, `- name: w%d.hooks-%d.example.com
  clientConfig: {service: {namespace: team-%d, name: hooks-%d, path: /w%d}}
  rules: [{apiGroups: ["", apps, team-%d.example.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [pods, deployments, things]}]
  failurePolicy: Fail
  timeoutSeconds: 5
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-public, kube-node-lease]}]}
  matchConditions: [{name: labelled, expression: "has(object.metadata.labels) && 'team-%d' in object.metadata.labels"}]
`, j, i, i%100, i, j, i%100, i%100)
		}
	}
	for b.Loop() {
		if status := run(b.Context(), []string{"lint", "-f", "-"}, strings.NewReader(text.String()), io.Discard, io.Discard); status != exitFound {
			b.Fatalf("status %d", status)
		}
	}
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "configurations/s")
}

// BenchmarkLint1000Policies runs the whole command on a file with 1,000 policies and bindings, all different.
func BenchmarkLint1000Policies(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy-%[1]d}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]}
  matchConditions: [{name: team, expression: "object.metadata.name != 'x-%[1]d'"}]
  variables: [{name: replicas, expression: "object.spec.?replicas.orValue(%[1]d)"}]
  validations: [{expression: "variables.replicas <= %[1]d", messageExpression: "'at most %[1]d replicas, not ' + string(variables.replicas)"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: policy-%[1]d}
spec: {policyName: policy-%[1]d, validationActions: [Deny]}
`, i)
	}
	for b.Loop() {
		if status := run(b.Context(), []string{"lint", "-f", "-"}, strings.NewReader(text.String()), io.Discard, io.Discard); status != exitOK {
			b.Fatalf("status %d", status)
		}
	}
}
