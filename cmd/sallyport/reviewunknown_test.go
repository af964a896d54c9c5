// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const selectiveYAML = `{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: gpu}, spec: {namespaceSelector: {matchLabels: {tier: gold}}, selector: {matchLabels: {proxy: "true"}}, env: [{name: A, value: b}]}}
---
`

const excludedYAML = `{apiVersion: v1, kind: Pod, metadata: {name: excluded, labels: {proxy: "true"}, annotations: {poddefault.admission.kubeflow.org/exclude: "true"}}, spec: {containers: [{name: main, image: x}]}}`

func TestAReviewWithoutTheLabelsOfTheNamespaceIsNotKnown(t *testing.T) {
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {tier: gold}}}"
	for name, tc := range map[string]struct {
		pod, with string
		status    int
		stderr    string
	}{
		"no Namespace":                {matchingYAML, selectiveYAML, exitError, "whether ClusterPodDefault gpu is applied is not known: it selects namespaces by tier=gold"},
		"with the Namespace":          {matchingYAML, selectiveYAML + namespace, exitOK, ""},
		"a pod that it does not want": {otherYAML, selectiveYAML, exitOK, ""},
		"by the name alone":           {matchingYAML, strings.ReplaceAll(selectiveYAML, "tier: gold", "kubernetes.io/metadata.name: default"), exitOK, ""},
		"a pod that a PodDefault labels": {otherYAML, selectiveYAML + "{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: labels}, spec: {selector: {}, labels: {proxy: 'true'}}}", exitError,
			"whether ClusterPodDefault gpu is applied is not known: it selects namespaces by tier=gold"},
		"a pod that excludes itself":        {excludedYAML, strings.ReplaceAll(selectiveYAML, "spec: {", "spec: {allowExclude: true, "), exitOK, ""},
		"a pod that may not exclude itself": {excludedYAML, selectiveYAML, exitError, "whether ClusterPodDefault gpu is applied is not known: it selects namespaces by tier=gold"},
		"another name":                      {matchingYAML, strings.ReplaceAll(selectiveYAML, "tier: gold", "kubernetes.io/metadata.name: other, tier: gold"), exitOK, ""},
	} {
		got := sallyportWith(t, tc.pod, "review", "-f", "-", "--with", file(t, "with.yaml", tc.with))
		if got.status != tc.status || !strings.Contains(got.stderr, tc.stderr) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A ProjectRequest is the example of the webhook that Sallyport replaces: OpenShift has no definition of it.
func TestAnObjectWithoutDefinitionIsReviewedInItsScope(t *testing.T) {
	request := "{apiVersion: project.openshift.io/v1, kind: ProjectRequest, metadata: {name: fourth}}"
	with := file(t, "with.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: first, annotations: {openshift.io/requester: alice}}}")
	config := configured(t, "webhooks: [{name: projectlimit, settings: {limit: 1}}]\n")
	got := sallyportWith(t, request, "review", "-f", "-", "--config", config, "--with", with, "--as", "alice")
	if got.status != exitDenied {
		t.Errorf("review: %+v", got)
	}
	configuration := `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: sallyport}
webhooks:
- name: projectlimit.sallyport.io
  clientConfig: {service: {name: webhooks, namespace: sallyport-system}}
  rules: [{apiGroups: [project.openshift.io], apiVersions: [v1], operations: [CREATE], resources: [projectrequests], scope: Cluster}]
  sideEffects: NoneOnDryRun
  admissionReviewVersions: [v1]
`
	chained := sallyportWith(t, request, "chain", "projectrequests", "--list", "-f", "-", "--with", file(t, "chain.yaml", readFile(t, with)+configuration), "--as", "alice")
	if chained.status != exitOK || !strings.Contains(chained.stdout, "projectlimit.sallyport.io") {
		t.Errorf("chain: %+v", chained)
	}
	unknown := sallyportWith(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}", "chain", "widgets.example.com", "-f", "-", "--with", with)
	if unknown.status != exitOK {
		t.Errorf("chain of a kind without definition: %+v", unknown)
	}
}

func TestAnInvalidPodDefaultThatIsStoredIsIgnoredAsByTheServer(t *testing.T) {
	list := func(uid string) string {
		return `{apiVersion: v1, kind: List, items: [{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: broken` + uid + `}, spec: {selector: {}, env: {A: b}}},
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: proxy` + uid + `}, spec: {selector: {matchLabels: {proxy: "true"}}, env: [{name: P, value: q}]}}]}`
	}
	pod := file(t, "pod.yaml", matchingYAML)
	for name, tc := range map[string]struct {
		list   string
		flags  []string
		status int
	}{
		"stored":       {list(", uid: u"), nil, exitOK},
		"warn":         {list(""), []string{"--validate", "warn"}, exitOK},
		"ignore":       {list(""), []string{"--validate", "ignore"}, exitOK},
		"strict, new":  {list(""), nil, exitError},
		"both at once": {list(", uid: u"), []string{"--validate", "ignore"}, exitOK},
	} {
		got := sallyportWith(t, tc.list, append([]string{"review", "-f", pod, "--with", "-"}, tc.flags...)...)
		if got.status != tc.status || tc.status == exitOK && (!strings.Contains(got.stdout, "changed by poddefault") || !strings.Contains(got.stderr, "the server ignores")) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
