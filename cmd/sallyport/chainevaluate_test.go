// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
)

const (
	evaluatedPod  = "testdata/chain/pod.yaml"
	evaluatedWith = "testdata/chain/with.yaml"
)

// evaluateChain evaluates the pod of testdata.
func evaluateChain(t *testing.T, more ...string) result {
	t.Helper()
	return sallyport(t, append([]string{"chain", "pods", "-f", evaluatedPod, "--with", evaluatedWith, "--as", "alice"}, more...)...)
}

func TestChainEvaluatesEachStepOnTheResultOfTheOneBefore(t *testing.T) {
	got := evaluateChain(t)
	if got.status != exitDenied || got.stderr != "" {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	equal(t, "chain/denied.txt", got.stdout)
	allowed := sallyportWith(t, strings.ReplaceAll(readFile(t, evaluatedPod), "image: nginx", "image: registry.example.com/nginx:1"),
		"chain", "pods", "-f", "-", "--with", evaluatedWith, "--as", "alice")
	equal(t, "chain/allowed.txt", allowed.wantOK(t))
}

func TestChainPrintsAnEvaluationForOtherPrograms(t *testing.T) {
	var printed chain.Result
	if err := json.Unmarshal([]byte(evaluateChain(t, "-o", "json").stdout), &printed); err != nil {
		t.Fatal(err)
	}
	last := printed.Steps[len(printed.Steps)-1]
	if printed.Denied == nil || printed.Denied.Code != 422 || last.Name != "images/ours" || last.Outcome != chain.Denied || last.Param != "team-a/images" {
		t.Errorf("%+v, %+v", printed.Denied, last)
	}
	if github := evaluateChain(t, "-o", "github"); github.status != exitDenied || !strings.Contains(github.stdout, "::error file=testdata/chain/pod.yaml,line=1") || !strings.Contains(github.stdout, "images must be from registry.example.com/") {
		t.Errorf("%+v", github)
	}
	for _, format := range []string{"junit", "sarif"} {
		if got := evaluateChain(t, "-o", format); got.status != exitDenied || !strings.Contains(got.stdout, "images/ours") {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

func TestChainDoesNotSucceedIfTheResultIsNotKnown(t *testing.T) {
	allowed := strings.ReplaceAll(readFile(t, evaluatedPod), "image: nginx", "image: registry.example.com/nginx:1")
	args := []string{"chain", "pods", "-f", "-", "--with", evaluatedWith, "--with", everyWebhook}
	got := sallyportWith(t, allowed, args...)
	if got.status != exitError || !strings.Contains(got.stderr, "sallyport/imagepull.sallyport.io") || !strings.Contains(got.stderr, "--allow-unknown") || !strings.Contains(got.stdout, "allowed, changed, as far as is known") {
		t.Errorf("%+v", got)
	}
	if got := sallyportWith(t, allowed, append(args, "--allow-unknown")...); got.status != exitOK || !strings.Contains(got.stdout, "note: the request is taken as one of the user sallyport-chain") {
		t.Errorf("%+v", got)
	}
	// The webhook is one of Sallyport: it is answered here if it is enabled.
	config := configured(t, "webhooks: [{name: poddefault}, {name: imagepull, settings: {forbidLatest: true}}]\n")
	if got := sallyportWith(t, allowed, append(args, "--config", config)...); got.status != exitOK {
		t.Errorf("%+v", got)
	}
}

func TestChainEvaluatesAsTheReleaseDoes(t *testing.T) {
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n---\n"
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {tolerations: [{operator: Exists}], containers: [{name: c, image: i}]}}"
	copied := strings.Replace(crash, "[Object.spec.tolerations{key: 'a'}]", "namespaceObject.metadata.labels", 1)
	review := "{apiVersion: admissionregistration.k8s.io/v1beta1, kind: MutatingAdmissionPolicy, metadata: {name: old}}"
	beta := strings.Replace(strings.ReplaceAll(crash, "k8s.io/v1\n", "k8s.io/v1beta1\n"), "[Object.spec.tolerations{key: 'a'}]", "[{'operator': 'Exists'}]", 1)
	newer := strings.Replace(crash, "[Object.spec.tolerations{key: 'a'}]", "[1].includes(1)", 1)
	for _, tc := range []struct {
		name, with, version string
		status              int
		says                string
	}{
		{"a crash", crash, "1.36.3", exitDenied, "the API server panics"},
		{"a crash in some patches", crash, "1.36", exitError, "in Kubernetes 1.34, 1.35.0 to 1.35.7, 1.36.0 to 1.36.4"},
		{"no crash", crash, "v1.36.5", exitError, "spec.tolerations[0].key: whether"}, // whether its value is valid is not known
		{"a crash in some release", crash, "", exitError, "note: crash/crash: in Kubernetes 1.34, 1.35.0 to 1.35.7, 1.36.0 to 1.36.4"},
		{"a kind that is not served", crash, "1.35.4", exitError, "MutatingAdmissionPolicy crash: Kubernetes 1.35.4 does not serve admissionregistration.k8s.io/v1 MutatingAdmissionPolicy, which came with 1.36"},
		{"a defect of the libraries", copied, "1.36.5", exitError, "not in 1.36.5"},
		{"a function that is too new", newer, "1.37", exitError, "undeclared reference to 'includes'"},
		{"a release that is too new", "", "1.99", exitError, "what Kubernetes 1.99 does"},
		{"a policy of another version", review, "1.36", exitError, "MutatingAdmissionPolicy old: objects of admissionregistration.k8s.io/v1beta1 are not evaluated"},
		{"a policy of the version that is served", beta, "1.35.8", exitOK, "only with --feature-gates=MutatingAdmissionPolicy=true"},
		{"a crash in an older release", strings.ReplaceAll(crash, "k8s.io/v1\n", "k8s.io/v1beta1\n"), "1.34.4", exitDenied, "the API server panics"},
		{"no release", "", "latest", exitError, "--kubernetes-version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"chain", "pods", "-f", "-", "--with", file(t, "with.yaml", namespace+tc.with)}
			if tc.version != "" {
				args = append(args, "--kubernetes-version", tc.version)
			}
			if got := sallyportWith(t, pod, args...); got.status != tc.status || !strings.Contains(got.stdout+got.stderr, tc.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Policies that are exported as static manifests inject what those in the API do.
func TestChainReadsExportedStaticManifests(t *testing.T) {
	folder := t.TempDir()
	with := file(t, "with.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n")
	podDefaults := strings.Replace(podDefaultYAML, "name: proxy\n", "name: proxy\n  namespace: default\n", 1)
	args := []string{"chain", "pods", "-f", "-", "--with", with, "--allow-unknown", "-o", "yaml"}
	for _, plugin := range []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"} {
		printed := sallyportWith(t, podDefaults, "export", "-f", "-", "--static-plugin", plugin).wantOK(t)
		if err := os.Mkdir(filepath.Join(folder, plugin), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, plugin, "policies.yaml"), []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--static-manifests-dir", filepath.Join(folder, plugin))
	}
	got := sallyportWith(t, matchingYAML, args...)
	if got.status != exitOK || !strings.Contains(got.stdout, "sallyport-poddefaults-default.static.k8s.io") || !strings.Contains(got.stdout, "outcome: changed") {
		t.Errorf("%+v", got)
	}
	linted(t, "", exitOK, "--rule", "static", "--static-manifests-dir", folder)
	if got := sallyportWith(t, podDefaultYAML, "export", "-f", "-", "--static-plugin", "all"); got.status != exitError || !strings.Contains(got.stderr, "--static-plugin") {
		t.Errorf("%+v", got)
	}
}

func TestAPolicyThatReadsTheFieldManagerIsUnknownUnlessItIsNamed(t *testing.T) {
	with := file(t, "with.yaml", readFile(t, evaluatedWith)+"\n---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: robots}, spec: {"+
		"matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: request.options.fieldManager != 'robot', message: no robots}]}}\n"+
		"---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: robots}, spec: {policyName: robots, validationActions: [Deny]}}\n")
	allowed := strings.ReplaceAll(readFile(t, evaluatedPod), "image: nginx", "image: registry.example.com/nginx:1")
	args := []string{"chain", "pods", "-f", "-", "--with", with, "--as", "alice"}
	if got := sallyportWith(t, allowed, args...); got.status != exitError || !strings.Contains(got.stderr, "robots/robots: it reads request.options.fieldManager, which is not known here: --field-manager names it") {
		t.Errorf("%+v", got)
	}
	if got := sallyportWith(t, allowed, append(args, "--field-manager", "kubectl-create")...); got.status != exitOK {
		t.Errorf("%+v", got)
	}
	if got := sallyportWith(t, allowed, append(args, "--field-manager", "robot")...); got.status != exitDenied || !strings.Contains(got.stdout, "no robots") {
		t.Errorf("%+v", got)
	}
}

func TestProblemsOfAnEvaluationSayWhatToDo(t *testing.T) {
	broken := file(t, "broken.yaml", strings.ReplaceAll(readFile(t, evaluatedWith), "namespaceObject.metadata.labels.tier", "namespaceObject."))
	other := file(t, "other.yaml", strings.ReplaceAll(readFile(t, evaluatedPod), "name: web", "name: other"))
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"flags without an object":        {[]string{"--with", evaluatedWith, "--as-dry-run"}, []string{"--as-dry-run", "requires -f"}},
		"flags of an evaluation":         {[]string{"--list", "-f", evaluatedPod, "--with", evaluatedWith, "--call", "--old", other}, []string{"--call", "--old", "requires -f with the object, without --list"}},
		"a manager of a list":            {[]string{"--list", "-f", evaluatedPod, "--with", evaluatedWith, "--field-manager", "me"}, []string{"--field-manager=me requires -f"}},
		"a manager of two lines":         {[]string{"-f", evaluatedPod, "--with", evaluatedWith, "--field-manager", "a\nb"}, []string{"--field-manager", "invalid character"}},
		"a report of a list":             {[]string{"--with", evaluatedWith, "-o", "sarif"}, []string{"--output sarif requires -f"}},
		"an old object of a creation":    {[]string{"-f", evaluatedPod, "--with", evaluatedWith, "--old", other}, []string{"--old requires --operation UPDATE"}},
		"an old object of another name":  {[]string{"-f", evaluatedPod, "--with", evaluatedWith, "--operation", "UPDATE", "--old", other}, []string{"the old object is Pod team-a/other"}},
		"a policy that does not compile": {[]string{"-f", evaluatedPod, "--with", broken}, []string{"broken.yaml:", "MutatingAdmissionPolicy tier", "Syntax error"}},
		"an invalid configuration":       {[]string{"-f", evaluatedPod, "--with", evaluatedWith, "--config", evaluatedPod}, []string{"SallyportConfiguration"}},
		"a webhook that does not exist":  {[]string{"-f", evaluatedPod, "--with", evaluatedWith, "--webhooks", "poddefaults"}, []string{`"poddefaults"`}},
	} {
		t.Run(name, func(t *testing.T) {
			sallyport(t, append([]string{"chain", "pods"}, tc.args...)...).wantError(t, tc.want...)
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
