// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestPodDefaultsAreDecodedStrictly(t *testing.T) {
	const head = "# about\n---\napiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata:\n  name: a\nspec:\n  selector: {}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"an unknown field":                {head + "  envv: []\n", `:9: unknown field "spec.envv"`},
		"a field in the wrong case":       {head + "  Env: []\n", `:9: unknown field "spec.Env"`},
		"an unknown field deep inside":    {head + "  volumes:\n  - name: v\n    secret:\n      name: s\n      secretName: s\n", `:12: unknown field "spec.volumes[0].secret.name"`},
		"a value that is not in quotes":   {head + "  env:\n  - name: A\n    value: true\n", ":11: spec.env[0].value: want a string, got a boolean: put it in quotes"},
		"a text instead of a boolean":     {head + "  automountServiceAccountToken: \"no\"\n", ":9: spec.automountServiceAccountToken: want true or false, got a string"},
		"a mapping instead of a sequence": {head + "  env: {A: b}\n", ":9: spec.env: want a sequence, got a mapping"},
		"a text instead of a number":      {head + "  tolerations:\n  - key: k\n    tolerationSeconds: soon\n", ":11: spec.tolerations[0].tolerationSeconds: want a number, got a string"},
		"a text instead of a mapping":     {head + "  labels: a=b\n", ":9: spec.labels: want a mapping, got a string"},
		"an invalid quantity":             {head + "  sidecars:\n  - name: s\n    resources:\n      limits:\n        cpu: much\n", ":13: spec.sidecars[0].resources.limits.cpu: quantities must match"},
		"no name":                         {strings.Replace(head, "name: a", "labels: {}", 1), ":5: metadata.name: Required value: name or generateName is required"},
		"an unknown field in a List":      {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: kubeflow.org/v1alpha1\n  kind: PodDefault\n  metadata: {name: a}\n  spec:\n    selector: {}\n    selectr: {}\n", `:9: unknown field "items[0].spec.selectr"`},
		"an unknown field in JSON":        {"{\"apiVersion\": \"kubeflow.org/v1alpha1\", \"kind\": \"PodDefault\", \"metadata\": {\"name\": \"a\"},\n\n\"spec\": {\"selector\": {},\n\"selectr\": {}}}", `:4: unknown field "spec.selectr"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "with.yaml", tc.text)
			got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", path)
			if got.status != exitError || got.stdout != "" || !strings.HasPrefix(got.stderr, "sallyport: "+path+tc.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("status %d, stdout %q, stderr:\n%s", got.status, got.stdout, got.stderr)
			}
		})
	}
	t.Run("several at once", func(t *testing.T) {
		path := file(t, "with.yaml", head+"  envv: []\n---\n"+head+"  labels: x\n")
		sallyportWith(t, "x: y\n", "review", "-f", "-", "--with", path).wantError(t,
			path+`:9: unknown field "spec.envv"`, path+":19: spec.labels: want a mapping", "stdin:1: not a Kubernetes object")
	})
}

func TestPodDefaultsThatCanNeverWorkAreToldOfAndLeftOut(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML+`---
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata:
  name: broken
spec:
  selector:
    matchLabels:
      two words: proxy
  env:
  - {name: A, value: s3cret}
  - {name: A, value: other}
`)
	got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with)
	if got.status != exitOK || !strings.Contains(got.stdout, "HTTP_PROXY") {
		t.Errorf("status %d, stdout:\n%s", got.status, got.stdout)
	}
	prefix := "warning: " + with + ":13: PodDefault default/broken can never work and is left out: spec.selector.matchLabels: "
	if !strings.HasPrefix(got.stderr, prefix) || !strings.Contains(got.stderr, `; spec.env[1].name: Duplicate value: "A"`) {
		t.Errorf("stderr:\n%s", got.stderr)
	}
	if strings.Count(got.stderr, "\n") != 1 || strings.Contains(got.stderr, "s3cret") {
		t.Errorf("stderr:\n%s", got.stderr)
	}
}

func TestClusterPodDefaultsOfFilesSelectNamespacesByTheirLabels(t *testing.T) {
	with := file(t, "with.yaml", `apiVersion: sallyport.io/v1alpha1
kind: ClusterPodDefault
metadata:
  name: platform-proxy
spec:
  selector: {}
  namespaceSelector:
    matchLabels: {team: a}
  env:
  - {name: NO_PROXY, value: .svc}
---
apiVersion: v1
kind: Namespace
metadata:
  name: team-a
  labels: {team: a}
`)
	args := []string{"review", "-f", "-", "--with", with, "-n"}
	if got := sallyportWith(t, otherYAML, append(args, "team-a")...); !strings.Contains(got.stdout, "NO_PROXY") || !strings.Contains(got.stdout, "cluster/platform-proxy") {
		t.Errorf("in the namespace:\n%s%s", got.stdout, got.stderr)
	}
	sallyportWith(t, otherYAML, append(args, "team-b")...).want(t, exitError, "Pod other: allowed, unchanged, as far as is known\n",
		"not known: Pod other: whether the namespace team-b exists, and its labels: it is not among the Namespaces in the files\n"+
			"sallyport: stdin:1: Pod other: whether ClusterPodDefault platform-proxy is applied is not known: it selects namespaces by team=a, and the labels of the namespace team-b are not given: add the Namespace to --with\n")
	sallyportWith(t, otherYAML, append(args, "team-a", "--webhooks", "poddefault,projectlimit")...).wantOK(t)
}

func TestObjectsOfWithThatNobodyReadsAreNamedOnce(t *testing.T) {
	one := file(t, "one.yaml", matchingYAML)
	sallyportWith(t, otherYAML, "review", "-f", "-", "--with", one).want(t, exitOK, "Pod other: allowed, unchanged\n",
		"note: "+one+":1: Pod matching of v1 is not read by any webhook\n")
	more := file(t, "more.yaml", podDefaultYAML+"---\n"+matchingYAML+"---\n"+strings.Replace(podDefaultYAML, "v1alpha1", "v1", 1))
	sallyportWith(t, otherYAML, "review", "-f", "-", "--with", more).want(t, exitOK, "Pod other: allowed, unchanged\n",
		"note: "+more+":13: Pod matching of v1 is not read by any webhook; the same goes for 1 more of --with\n")
}

func TestAPodDefaultThatIsGivenTwiceIsToldOf(t *testing.T) {
	second := strings.Replace(podDefaultYAML, "HTTP_PROXY", "LATER", 1)
	with := file(t, "with.yaml", podDefaultYAML+"---\n"+second)
	got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with)
	want := "warning: " + with + ":13: PodDefault default/proxy was given before, at " + with + ":1: this one applies\n"
	if got.status != exitOK || got.stderr != want || !strings.Contains(got.stdout, "LATER") || strings.Contains(got.stdout, "HTTP_PROXY") {
		t.Errorf("status %d, stderr:\n%s\nstdout:\n%s", got.status, got.stderr, got.stdout)
	}
}

func TestSecretsThatPodDefaultsSelectComeFromFiles(t *testing.T) {
	const selecting = `apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: connections}
spec:
  selector: {matchLabels: {proxy: "true"}}
  envFromSecretSelector: {matchLabels: {connection: "true"}}
`
	none := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", file(t, "with.yaml", selecting))
	if none.status != exitOK || strings.Contains(none.stdout, "secretRef") || !strings.Contains(none.stderr, "note: PodDefaults select Secrets by labels, and there are none") {
		t.Errorf("without Secrets: status %d, stdout:\n%s\nstderr:\n%s", none.status, none.stdout, none.stderr)
	}
	with := file(t, "with.yaml", selecting+`---
apiVersion: v1
kind: Secret
metadata: {name: lake, labels: {connection: "true"}}
data: {PASSWORD: aGlkZGVu}
---
apiVersion: v1
kind: Secret
metadata: {name: unrelated}
---
apiVersion: v1
kind: Secret
metadata: {name: of-another-team, namespace: team-b, labels: {connection: "true"}}
`)
	got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with)
	if got.status != exitOK || got.stderr != "" || strings.Count(got.stdout, "secretRef") != 1 || !strings.Contains(got.stdout, "name: lake") || strings.Contains(got.stdout, "aGlkZGVu") {
		t.Errorf("status %d, stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
	}

	// With a configuration, the Secrets are those that a server with it knows.
	for name, tc := range map[string]struct{ settings, wantOut, wantErr string }{
		"a server that knows no Secrets": {"{}", "", "note: PodDefaults select Secrets by labels, and the webhook poddefault has no dataConnections in this configuration"},
		"one that knows others":          {"{dataConnections: example.com/other}", "", ""},
		"one that knows this one":        {"{dataConnections: 'connection in (true, yes)'}", "name: lake", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := file(t, "config.yaml", "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\nwebhooks: [{name: poddefault, settings: "+tc.settings+"}]\n")
			got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "--config", config)
			if got.status != exitOK || strings.Contains(got.stdout, "secretRef") != (tc.wantOut != "") || !strings.Contains(got.stdout, tc.wantOut) || !strings.Contains(got.stderr, tc.wantErr) {
				t.Errorf("status %d, stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
			}
		})
	}
}
