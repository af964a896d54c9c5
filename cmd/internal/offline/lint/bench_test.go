// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"fmt"
	"testing"
)

// manyConfigurations returns 500 configurations with two webhooks each, for servers in
// a hundred namespaces, with their Services and Deployments.
func manyConfigurations(tb testing.TB) []Object {
	tb.Helper()
	var all bytes.Buffer
	for i := range 500 {
		kind := []string{"Mutating", "Validating"}[i%2]
		fmt.Fprintf(&all, `---
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: hooks-%d}
webhooks:
`, kind, i)
		for j := range 2 {
			fmt.Fprintf(&all, `- name: w%d.hooks-%d.example.com
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
		fmt.Fprintf(&all, `---
apiVersion: v1
kind: Service
metadata: {namespace: team-%d, name: hooks-%d}
spec: {selector: {app: hooks-%d}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: team-%d, name: hooks-%d}
spec: {replicas: 2, selector: {matchLabels: {app: hooks-%d}}, template: {metadata: {labels: {app: hooks-%d}}, spec: {containers: [{name: c, image: "c:1", ports: [{containerPort: 8443}]}]}}}
`, i%100, i, i, i%100, i, i, i)
	}
	return objects(tb, "many.yaml", bytes.TrimPrefix(all.Bytes(), []byte("---\n")))
}

// BenchmarkRun500Configurations measures all rules on 500 configurations with a
// thousand webhooks, including decoding.
func BenchmarkRun500Configurations(b *testing.B) {
	all := manyConfigurations(b)
	for b.Loop() {
		in, err := ReadFiles(all)
		if err != nil {
			b.Fatal(err)
		}
		if report := Run(in, Options{Now: then}); len(report.Findings) == 0 {
			b.Fatal("nothing was found")
		}
	}
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "configurations/s")
}

// BenchmarkRunOne measures a single small file, which is dominated by the CEL
// environment.
func BenchmarkRunOne(b *testing.B) {
	data := example(b, "wedge-self").File("pass.yaml")
	all := objects(b, "pass.yaml", data)
	for b.Loop() {
		in, err := ReadFiles(all)
		if err != nil {
			b.Fatal(err)
		}
		Run(in, Options{Now: then})
	}
}
