// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
)

const everyWebhook = "testdata/manifests/configurations-of-every-webhook.yaml"

func TestChainPrintsWhoIsAskedInOrder(t *testing.T) {
	pod := file(t, "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: team-a}\nspec: {containers: [{name: c, image: c}]}\n")
	sallyport(t, "chain", "po", "--list", "-f", pod, "--with", everyWebhook, "--as", "alice").want(t, exitOK, `CREATE pods in namespace team-a

Mutating webhooks, one after the other:
   1  in      sallyport/poddefault.sallyport.io  (Fail, 5 s, webhooks.sallyport-system.svc:443)
              rule ""/v1 pods; namespaceSelector matches namespace team-a; condition not-excluded is true; condition not-a-mirror-pod is true
   2  in      sallyport/imagepull.sallyport.io  (Fail, 5 s, webhooks.sallyport-system.svc:443)
              rule ""/v1 pods; namespaceSelector matches namespace team-a; condition not-a-mirror-pod is true

Validating webhooks, all at the same time:
   3  in      sallyport/validate.imagepull.sallyport.io  (Fail, 5 s, webhooks.sallyport-system.svc:443)
              rule ""/v1 pods; namespaceSelector matches namespace team-a; condition not-a-mirror-pod is true

Once more, if another one has changed the object after it: 1, 2

If no server answers, this takes up to 15 s.
7 are not asked: --show-excluded says why.
`, "")
}

const policiesOfTwoVersions = `apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: beta}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[]"}}]
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: beta}
spec: {policyName: beta}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: a, validationActions: [Deny]}
`

func TestChainListsPoliciesOfStaticManifestsAndOfV1Beta1(t *testing.T) {
	with, folder := file(t, "policies.yaml", policiesOfTwoVersions), t.TempDir()
	_, newer, _ := strings.Cut(policiesOfTwoVersions, "kind: MutatingAdmissionPolicyBinding\nmetadata: {name: beta}\nspec: {policyName: beta}\n---\n")
	static := strings.NewReplacer("name: a}", "name: z.static.k8s.io}", "policyName: a,", "policyName: z.static.k8s.io,").Replace(newer)
	if err := os.WriteFile(filepath.Join(folder, "z.yaml"), []byte(static), 0o600); err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string][]string{
		"pods":                        {"beta/beta in", "z.static.k8s.io/z.static.k8s.io in", "a/a in"},
		"validatingadmissionpolicies": {"beta/beta out", "z.static.k8s.io/z.static.k8s.io in", "a/a out"},
	} {
		var printed inspect.Chain
		out := sallyport(t, "chain", resource, "-o", "json", "--with", with, "--static-manifests-dir", folder).wantOK(t)
		if err := json.Unmarshal([]byte(out), &printed); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, link := range printed.Chain {
			got = append(got, link.Name+" "+string(link.Answer))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "z.yaml"), []byte(policiesOfTwoVersions), 0o600); err != nil {
		t.Fatal(err)
	}
	sallyport(t, "chain", "pods", "--with", with, "--static-manifests-dir", folder).wantError(t, "its name has to end in .static.k8s.io")
}

func TestChainJudgesByTheObjectAndTheNamespace(t *testing.T) {
	for _, tc := range []struct {
		name, object string
		args         []string
		want         map[string]string // some webhooks with their expected answers
	}{
		{"a Service that may be forbidden", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort}\n", []string{"svc"},
			map[string]string{"sallyport/servicetype.sallyport.io": "in", "sallyport/poddefault.sallyport.io": "out"}},
		{"a Service that may not", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: ClusterIP}\n", []string{"services"},
			map[string]string{"sallyport/servicetype.sallyport.io": "out"}},
		{"a pod of the system", "", []string{"pods", "-n", "kube-system"}, map[string]string{"sallyport/poddefault.sallyport.io": "out"}},
		{"a pod of which nothing is known", "", []string{"pods"}, map[string]string{"sallyport/poddefault.sallyport.io": "maybe"}},
		{"a namespace by a service account of the system", "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n",
			[]string{"ns", "--as", "x", "--as-group", "system:masters"}, map[string]string{"sallyport/projectlimit.sallyport.io": "out"}},
		{"a namespace by somebody", "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n",
			[]string{"namespaces", "--as", "alice"}, map[string]string{"sallyport/projectlimit.sallyport.io": "in", "sallyport/requester.projectlimit.sallyport.io": "in"}},
		{"a namespace that does not change hands", "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n",
			[]string{"namespaces", "--as", "alice", "--operation", "UPDATE"}, map[string]string{"sallyport/projectlimit.sallyport.io": "out"}},
		{"a sub-resource", "", []string{"pods/ephemeralcontainers", "--operation", "UPDATE"}, map[string]string{"sallyport/poddefault.sallyport.io": "out", "sallyport/imagepull.sallyport.io": "maybe"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"chain", "--list", "-o", "json", "--with", everyWebhook}, tc.args...)
			if tc.object != "" {
				args = append(args, "-f", "-")
			}
			var printed inspect.Chain
			if err := json.Unmarshal([]byte(sallyportWith(t, tc.object, args...).wantOK(t)), &printed); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, link := range printed.Chain {
				got[link.Name] = string(link.Answer)
			}
			for name, want := range tc.want {
				if got[name] != want {
					t.Errorf("%s: %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

func TestChainKnowsTheDefinitionsOfFiles(t *testing.T) {
	with := file(t, "crd.yaml", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions: [{name: v1, served: true, storage: true}, {name: v2, served: true, storage: false}, {name: v3, served: false, storage: false}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: tabs}
webhooks:
- {name: check.tabs.example.com, rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [crontabs]}], sideEffects: None}
`)
	for _, name := range []string{"ct", "crontab", "crontabs", "CronTab", "crontabs.example.com", "crontabs.v2.example.com", "ct.example.com"} {
		got := sallyport(t, "chain", name, "--with", with).wantOK(t)
		if !strings.Contains(got, "1  in      tabs/check.tabs.example.com") || strings.Contains(name, "v2") != strings.Contains(got, "as example.com/v1") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	sallyport(t, "chain", "crontabs.v3.example.com", "--with", with).wantError(t, `no resource "crontabs.v3.example.com"`)
}

func TestProblemsOfChainSayWhatToDo(t *testing.T) {
	pod := file(t, "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: team-a}\n")
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no resource":                   {nil, []string{"a resource such as pods"}},
		"two resources":                 {[]string{"pods", "services"}, []string{"got 2"}},
		"a resource that nobody knows":  {[]string{"poods", "--with", everyWebhook}, []string{`no resource "poods"`}},
		"an object of another resource": {[]string{"services", "-f", pod, "--with", everyWebhook}, []string{"is not of services"}},
		"another namespace":             {[]string{"pods", "-n", "team-b", "-f", pod, "--with", everyWebhook}, []string{"--namespace says team-b"}},
		"a namespace for a node":        {[]string{"nodes", "-n", "x", "--with", everyWebhook}, []string{"in no namespace"}},
		"flags that contradict":         {[]string{"pods", "--operation", "create", "-o", "xml", "--with", everyWebhook, "--context", "c"}, []string{`--operation "create"`, `--output "xml"`, "--with replaces the cluster"}},
		"a file of two objects":         {[]string{"pods", "-f", everyWebhook, "--with", everyWebhook}, []string{"contains 2 objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			sallyport(t, append([]string{"chain"}, tc.args...)...).wantError(t, tc.want...)
		})
	}
}

func TestProblemsInFlagsOfDoctorAreAllNamed(t *testing.T) {
	sallyport(t, "doctor", "-o", "xml", "--service", "x", "--metrics-port", "0", "--replica", "here", "--dial", "there", "--configuration-name", "A b", "--authority-secret", "x").wantError(t,
		`--output "xml"`, "--service: registration.service.namespace: Required value", "--metrics-port 0", `--replica "here"`, `--dial "there"`, `--configuration-name "A b"`, `--authority-secret: certificate.authoritySecret: Invalid value: "x"`)
}

func TestDoctorEndsIfThereIsNobodyToAsk(t *testing.T) {
	kubeconfig := file(t, "kubeconfig", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`)
	sallyport(t, "doctor", "--kubeconfig", kubeconfig).wantError(t, "asking the API server for its version")
	sallyport(t, "lint", "--cluster", "--kubeconfig", kubeconfig).wantError(t, "listing mutatingwebhookconfigurations")
	sallyport(t, "chain", "pods", "--kubeconfig", kubeconfig).wantError(t, "listing mutatingwebhookconfigurations")
}
