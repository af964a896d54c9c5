// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
)

const (
	badHook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: hooks
webhooks:
- name: check.hooks.example.com
  clientConfig: {url: "https://hooks.example.com/check"}
  rules:
  - {apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 3
  failurePolicy: Fail
`
	goodHook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: check.hooks.example.com
  clientConfig: {url: "https://hooks.example.com/check"}
  rules:
  - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [crontabs], scope: Namespaced}
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 3
  failurePolicy: Fail
`
)

// lintJSON is the output of lint -o json.
type lintJSON struct {
	lint.Report
	BelowThreshold int
	Errors         []string
}

func linted(t *testing.T, stdin string, status int, args ...string) lintJSON {
	t.Helper()
	got := sallyportWith(t, stdin, append([]string{"lint", "-o", "json"}, args...)...)
	if got.status != status {
		t.Fatalf("status %d, want %d\n%s%s", got.status, status, got.stdout, got.stderr)
	}
	var out lintJSON
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil {
		t.Fatalf("%v\n%s", err, got.stdout)
	}
	return out
}

func rulesOf(findings []lint.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Rule)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wedge refuses every write of a cluster.
const wedge = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: wedge}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]}
  validations: [{expression: "object.metadata.name =="}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: wedge}
spec: {policyName: wedge, validationActions: [Deny], paramRef: {name: nothing, namespace: default, parameterNotFoundAction: Deny}}
`

func TestLintFindsAPolicyThatRefusesEveryWrite(t *testing.T) {
	got := linted(t, wedge, exitFound, "-f", "-")
	for _, rule := range []string{"policy-wedge-wildcard", "policy-compile", "policy-param-missing", "policy-message"} {
		if !slices.Contains(rulesOf(got.Findings), rule) {
			t.Errorf("%s finds nothing: %v", rule, rulesOf(got.Findings))
		}
	}
}

const crash = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: crash}
spec:
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/spec/tolerations', value: [Object.spec.tolerations{key: 'a'}]}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: crash}
spec: {policyName: crash}
`

func TestLintKnowsTheDefectsOfAKubernetesVersion(t *testing.T) {
	for version, want := range map[string]struct {
		status   int
		severity lint.Severity
	}{
		"": {exitFound, lint.Warning}, "1.36": {exitFound, lint.Warning}, "1.36.3": {exitFound, lint.Error}, "v1.36.5": {0, ""}, "1.37.1": {0, ""},
		"1.35.4": {exitFound, lint.Error}, // which does not serve v1
	} {
		args := []string{"-f", "-", "--rule", "policy-release"}
		if version != "" {
			args = append(args, "--kubernetes-version", version)
		}
		got := linted(t, crash, want.status, args...)
		if len(got.Findings) > 0 && got.Findings[0].Severity != want.severity {
			t.Errorf("with %q it is %+v", version, got.Findings)
		}
	}
	for _, version := range []string{"1.2", "37", "latest"} {
		if got := sallyportWith(t, crash, "lint", "-f", "-", "--kubernetes-version", version); got.status != 1 || !strings.Contains(got.stderr, "--kubernetes-version") {
			t.Errorf("%s: status %d, %s", version, got.status, got.stderr)
		}
	}
}

func TestLintFindsNothingWrongInWhatManifestsPrints(t *testing.T) {
	// Settings that the test chooses although lint warns about them.
	askedFor := map[string][]string{"configurations-with-other-settings.yaml": {"timeout"}}
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			want, status := askedFor[filepath.Base(name)], exitOK
			if want != nil {
				status = exitFound
			}
			if got := linted(t, "", status, "-f", name); !slices.Equal(rulesOf(got.Findings), want) {
				t.Errorf("found %+v", got.Findings)
			}
		})
	}
	authority, err := certificate.NewAuthority(certificate.AuthorityOptions{DNSNames: []string{"webhooks.sallyport-system.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	ca := file(t, "ca.crt", string(authority.CABundle()))
	for name, args := range map[string][]string{
		"everything":       {"--service", service},
		"every webhook":    {"--service", service, "--webhooks", "*"},
		"shared namespace": {"--service", service, "--webhooks", "*", "--config", configured(t, "registration: {sharedNamespace: true}\n")},
		"fails open":       {"--service", service, "--webhooks", "*", "--failure-policy", "Ignore"},
		"static":           {"--static", "--url", "https://127.0.0.1:9443", "--part", "configurations", "--webhooks", "*"},
		"outside":          {"--url", "https://webhooks.example.com", "--webhooks", "*"},
		"network policy":   {"--service", service, "--network-policy", "--api-server-cidrs", "10.0.0.1/32", "--authentication", "Delegated"},
		// All at once, as in a real repository.
		"installed":                        {"--service", service, "--image", "x"},
		"installed with every webhook":     {"--service", service, "--image", "x", "--webhooks", "*"},
		"installed with a backstop":        {"--service", service, "--image", "x", "--registration", "None", "--config", configured(t, "webhooks: [{name: poddefault, settings: {guard: Backstop}}]\n")},
		"installed without registration":   {"--service", service, "--image", "x", "--registration", "None", "--ca-file", ca},
		"installed with an owner":          {"--service", service, "--image", "x", "--owner", "clusterrole/sallyport"},
		"installed with another leaf":      {"--service", service, "--image", "x", "--certificate-source", "Files", "--tls-secret", "leaf", "--ca-file", ca},
		"installed for known callers":      {"--service", service, "--image", "x", "--authentication", "Delegated", "--network-policy", "--api-server-cidrs", "10.0.0.1/32"},
		"installed on other ports":         {"--service", service + ":8443", "--image", "x", "--secure-port", "10250"},
		"installed in a shared namespace":  {"--service", service, "--image", "x", "--config", configured(t, "registration: {sharedNamespace: true}\n"), "--webhooks", "*"},
		"installed to fail open":           {"--service", service, "--image", "x", "--failure-policy", "Ignore", "--webhooks", "*"},
		"installed in place of Kubeflow's": append([]string{"--image", "x", "--secure-port", "4443", "--priority-class", ""}, kubeflowFlags...),
		"installed beside the API server":  {"--url", "https://127.0.0.1:9443", "--registration", "Manifest", "--part", "crd,rbac,user-roles,flowcontrol"},
	} {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(args, "--image") {
				args = append(args, "--part", "namespace,crd,rbac,user-roles,flowcontrol,workload,configurations")
			}
			printed := sallyport(t, append([]string{"manifests"}, args...)...).wantOK(t)
			if got := linted(t, printed, exitOK, "-f", "-"); len(got.Checked) == 0 {
				t.Error("nothing was looked at")
			}
		})
	}
}

func TestLintFindsNothingWrongInTheWorkloadThatIsInstalled(t *testing.T) {
	const file = "../../config/base/workload.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := linted(t, string(text), exitOK, "-f", "-")
	if got.Checked["Deployment"] != 1 || got.Checked["PodDisruptionBudget"] != 1 {
		t.Errorf("checked %v", got.Checked)
	}
	one := strings.Replace(string(text), "replicas: 2", "replicas: 1", 1)
	if got := linted(t, one, exitFound, "-f", "-"); !slices.Equal(rulesOf(got.Findings), []string{"workload-replicas"}) {
		t.Errorf("with one replica, found %+v", got.Findings)
	}
}

func TestLintExitsByWhatItFinds(t *testing.T) {
	good, bad := file(t, "good.yaml", goodHook), file(t, "bad.yaml", badHook)
	for _, tc := range []struct {
		name   string
		args   []string
		status int
	}{
		{"nothing is wrong", []string{"-f", good}, exitOK},
		{"something is wrong", []string{"-f", good, "-f", bad}, exitFound},
		{"only other rules are checked", []string{"-f", bad, "--rule", "timeout,name-fqdn"}, exitOK},
		{"one rule is checked", []string{"-f", bad, "--rule", "wedge-wildcard", "--severity", "error"}, exitFound},
		{"it is below the threshold", []string{"-f", bad, "--rule", "olm", "--severity", "error"}, exitOK},
		{"it is ignored", []string{"-f", bad, "--rule", "olm", "--ignore", "olm=no OLM here"}, exitOK},
		{"it is ignored for another object", []string{"-f", bad, "--rule", "olm", "--ignore", "olm@ValidatingWebhookConfiguration/other=no OLM here"}, exitFound},
		{"a file is not there", []string{"-f", good, "-f", filepath.Join(t.TempDir(), "none.yaml")}, exitError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sallyport(t, append([]string{"lint"}, tc.args...)...); got.status != tc.status {
				t.Errorf("status %d, want %d\n%s%s", got.status, tc.status, got.stdout, got.stderr)
			}
		})
	}
}

func TestLintPrintsForPeople(t *testing.T) {
	bad := strings.Replace(badHook, "name: hooks\n", "name: hooks\n  annotations:\n    "+lint.IgnoreAnnotation+": |-\n      wedge-wildcard: a test\n      virtual-resources check.hooks.example.com: another one\n", 1)
	got := sallyportWith(t, bad, "lint", "-f", "-", "--rule", "wedge-wildcard,virtual-resources,olm,service-exists")
	rule, _ := lint.FindRule("olm")
	got.want(t, exitFound, `stdin: ValidatingWebhookConfiguration/hooks
  warning olm (line 12): check.hooks.example.com: OLM refuses webhooks that match all groups
          `+rule.Fix+`

ignored: virtual-resources: ValidatingWebhookConfiguration/hooks check.hooks.example.com: another one
ignored: wedge-wildcard: ValidatingWebhookConfiguration/hooks check.hooks.example.com: a test
1 warning in 1 object
`, "")
}

func TestLintNeverPassesInSilence(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"values.yaml": "replicas: 2\n", "hook.yaml": goodHook, "README.md": "# no", "Chart.yaml": "apiVersion: v2\nname: x\n",
		"old.yaml": "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: tabs.example.com}\n",
		"cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := sallyport(t, "lint", "-f", folder)
	if got.status != exitOK {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
	for _, want := range []string{"values.yaml:1", "Chart.yaml:1", "not read in version apiextensions.k8s.io/v1beta1", "nothing found in 2 objects (1 of kinds that no rule is about)"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("nothing of %q in\n%s", want, got.stdout)
		}
	}

	for name, tc := range map[string]struct{ text, want string }{
		"malformed YAML beside a finding":    {badHook + "---\na: [\n", "not YAML"},
		"a template that was not rendered":   {"apiVersion: v1\nkind: {{ .Values.kind }}\n", "not YAML"},
		"a field of a wrong type":            {strings.Replace(badHook, "timeoutSeconds: 3", "timeoutSeconds: many", 1), "timeoutSeconds: want int32, got string"},
		"nothing at all":                     {"", "holds no object"},
		"nothing but a document of no kind":  {"a: b\n", "no Kubernetes object"},
		"bytes that are not text":            {"\x00\x01\x02", "not YAML"},
		"an API version that cannot be read": {"apiVersion: a/b/c\nkind: Pod\n", "a/b/c"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyportWith(t, tc.text, "lint", "-f", "-")
			if got.status != exitError || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
			}
			if strings.HasPrefix(tc.text, badHook) && !strings.Contains(got.stdout, "wedge-wildcard") {
				t.Errorf("what can be read was not looked at:\n%s", got.stdout)
			}
		})
	}
	got = sallyportWith(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "lint", "-f", "-")
	if !strings.Contains(got.stdout, "there is no webhook configuration") {
		t.Errorf("it does not say that there was nothing to look at:\n%s", got.stdout)
	}
}

func TestLintTakesTenThousandObjects(t *testing.T) {
	var stream strings.Builder
	for i := range 10_000 {
		if i%100 == 0 {
			stream.WriteString("---\n" + strings.Replace(badHook, "name: hooks\n", fmt.Sprintf("name: hooks-%d\n", i), 1))
			continue
		}
		fmt.Fprintf(&stream, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	got := linted(t, stream.String(), exitFound, "-f", "-", "--severity", "info")
	if got.Checked["other kinds"] != 9_900 || got.Checked["ValidatingWebhookConfiguration"] != 100 {
		t.Errorf("checked %v", got.Checked)
	}
	wedges := 0
	for _, f := range got.Findings {
		if f.Rule == "wedge-wildcard" {
			wedges++
		}
	}
	if wedges != 100 {
		t.Errorf("%d wedges", wedges)
	}
}

var staticPolicy = strings.ReplaceAll(strings.ReplaceAll(crash, "name: crash", "name: crash.static.k8s.io"), "policyName: crash", "policyName: crash.static.k8s.io")

func TestLintKnowsStaticManifests(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "hook.yaml"), []byte(goodHook), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := linted(t, "", exitFound, "--static-manifests-dir", folder); !slices.Equal(rulesOf(got.Findings), []string{"static"}) {
		t.Errorf("found %+v", got.Findings)
	}
	for name, tc := range map[string]struct{ text, version, want string }{
		"a parameter":              {strings.ReplaceAll(staticPolicy, "failurePolicy", "paramKind: {apiVersion: v1, kind: ConfigMap}\n  failurePolicy"), "", "must not have a paramKind"},
		"a name":                   {strings.ReplaceAll(staticPolicy, "name: crash.static.k8s.io}\nspec:\n", "name: crash}\nspec:\n"), "", "static configuration crash must end with .static.k8s.io"},
		"a binding without policy": {strings.ReplaceAll(staticPolicy, "policyName: crash.static.k8s.io", "policyName: other.static.k8s.io"), "", "names the policy other.static.k8s.io, which no static manifest has"},
		"a paramRef":               {strings.ReplaceAll(staticPolicy, "spec: {policyName", "spec: {paramRef: {name: p, parameterNotFoundAction: Deny}, policyName"), "", "must not have a paramRef"},
		"two plugins":              {staticPolicy + "---\n" + strings.Replace(goodHook, "name: good", "name: good.static.k8s.io", 1), "", "read one each"},
		"another kind":             {staticPolicy + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n", "", "ConfigMap c is in a directory of static manifests"},
		"an older release":         {staticPolicy, "1.36.5", "Kubernetes 1.36.5 has no admission policies in static manifests without a feature gate"},
		"nothing":                  {staticPolicy, "1.37", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder, args := t.TempDir(), []string{"--rule", "static", "--static-manifests-dir"}
			if err := os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if args = append(args, folder); tc.version != "" {
				args = append(args, "--kubernetes-version", tc.version)
			}
			status := exitFound
			if tc.want == "" {
				status = exitOK
			}
			got := linted(t, "", status, args...)
			if tc.want != "" && !slices.ContainsFunc(got.Findings, func(f lint.Finding) bool { return strings.Contains(f.Message, tc.want) }) {
				t.Errorf("found %+v", got.Findings)
			}
		})
	}
}

func TestLintExplainsEveryRule(t *testing.T) {
	for _, rule := range lint.Rules() {
		if printed := sallyport(t, "lint", "--explain", rule.ID).wantOK(t); !strings.Contains(printed, rule.Fix) {
			t.Errorf("%s is explained as\n%s", rule.ID, printed)
		}
	}
	sallyport(t, "lint", "--explain", "nonsense").wantError(t, `no rule "nonsense"`)
}

func TestProblemsInFlagsOfLintAreAllNamed(t *testing.T) {
	sallyport(t, "lint").wantError(t, "-f FILE, --static-manifests-dir DIRECTORY or --cluster")
	sallyport(t, "lint", "--severity", "bad", "-o", "xml", "--rule", "no-rule", "--ignore", "timeout", "--ignore", "nothing=x", "--context", "c").wantError(t,
		`--severity "bad": choose error, warning or info`, `--output "xml"`, `no rule "no-rule"`, "want RULE=REASON", `no rule "nothing"`, "--context require --cluster")
}

func TestTheAnnotationOfRegistrationIsTheLinters(t *testing.T) {
	if registration.LintAnnotation != lint.IgnoreAnnotation {
		t.Errorf("%s and %s", registration.LintAnnotation, lint.IgnoreAnnotation)
	}
}

func TestLintListsPodDefaultsThatFailOnTheNextApply(t *testing.T) {
	objects := `apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {namespace: team-a, name: old, uid: 6c5c, resourceVersion: "7"}
spec:
  selector: {matchLabels: {use: old}}
  env:
  - {name: A, value: "1"}
  - {name: "A=B", value: hunter2}
  volumes: [{name: My_Volume}]
---
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {namespace: team-a, name: works}
spec:
  selector: {matchLabels: {use: works}}
  volumes: [{name: data, configMap: {name: My_CM, optional: true}}] # no object has such a name, and the API server runs the pod
---
apiVersion: sallyport.io/v1alpha1
kind: ClusterPodDefault
metadata: {name: everywhere}
spec:
  selector: {}
  namespaceSelector: {matchExpressions: [{key: a, operator: Maybe}]}
---
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {namespace: team-a, name: typed}
spec:
  selector: {}
  env: hunter2
`
	got := linted(t, objects, exitFound, "-f", "-", "--rule", "poddefault-refused")
	var lines []string
	for _, f := range got.Findings {
		field, _, _ := strings.Cut(f.Message, ": ")
		lines = append(lines, fmt.Sprintf("%s %d %s", f.Object, f.Line, field))
		if strings.Contains(f.Message, "hunter2") {
			t.Errorf("it has a value: %s", f.Message)
		}
	}
	slices.Sort(lines)
	want := []string{
		"ClusterPodDefault/everywhere 23 spec.namespaceSelector.matchExpressions[0].operator",
		"PodDefault/team-a/old 8 spec.env[1].name", "PodDefault/team-a/old 9 spec.volumes[0].name", "PodDefault/team-a/typed 30 spec.env",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

func TestFindingsOfTheBaselineAreNotReported(t *testing.T) {
	args := []string{"lint", "-f", "-", "--rule", "policy-release,timeout,ca-bundle"}
	known := sallyportWith(t, crash, append(args, "--output", "json")...)
	baseline := file(t, "known.json", known.stdout)
	args = append(args, "--baseline", baseline)
	moved := "# a comment\n---\n" + crash // findings are the same at another line
	if got := sallyportWith(t, moved, args...); got.status != exitOK || !strings.Contains(got.stdout, "nothing found in 2 objects; 1 of the baseline") {
		t.Errorf("%+v", got)
	}
	other := strings.ReplaceAll(crash, "name: crash", "name: other")
	got := sallyportWith(t, crash+"---\n"+strings.ReplaceAll(other, "policyName: crash", "policyName: other"), args...)
	if got.status != exitFound || !strings.Contains(got.stdout, "MutatingAdmissionPolicy/other") || strings.Contains(got.stdout, "MutatingAdmissionPolicy/crash") {
		t.Errorf("another: %+v", got)
	}
	if got := sallyportWith(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", args...); got.status != exitOK || !strings.Contains(got.stdout, "0 of the baseline, in which 1 finding is no longer there") {
		t.Errorf("mended: %+v", got)
	}
	for _, text := range []string{"{}", "no JSON"} {
		if got := sallyportWith(t, crash, "lint", "-f", "-", "--baseline", file(t, "other.json", text)); got.status != exitError || !strings.Contains(got.stderr, "is not a baseline: write one with --output json") {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestFindingsThatRepeatAreOne(t *testing.T) {
	hook := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: many}
webhooks:
`
	for i := range 9 {
		hook += fmt.Sprintf("- {name: w%d.example.com, clientConfig: {service: {name: s, namespace: ns}}, rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}], failurePolicy: Fail, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 5}\n", i)
	}
	got := sallyportWith(t, hook, "lint", "-f", "-", "--rule", "ca-bundle")
	if got.status != exitFound || strings.Count(got.stdout, "caBundle is empty") != 1 || !strings.Contains(got.stdout, "and 8 more: w1.example.com, w2.example.com, w3.example.com, …") || !strings.Contains(got.stdout, "9 errors in 1 object") {
		t.Errorf("%+v", got)
	}
	if all := linted(t, hook, exitFound, "-f", "-", "--rule", "ca-bundle"); len(all.Findings) != 9 {
		t.Errorf("%d findings for programs", len(all.Findings))
	}
}

func TestTemplatesAreToBeRendered(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: operator\n",
		"templates/webhook.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: {{ include \"operator.name\" . }}\n  {{- with .Values.labels }}\n  labels: {{ toYaml . | nindent 4 }}\n  {{- end }}\n",
		"templates/other.yaml":   "{{ if .Values.enabled }}\napiVersion: v1\nkind: ConfigMap\n{{ end }}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := sallyport(t, "lint", "-f", folder)
	if got.status != exitError || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "2 files are each a template that is not rendered") || !strings.Contains(got.stderr, "helm template NAME "+filepath.ToSlash(folder)+" | sallyport lint -f -") {
		t.Errorf("%+v", got)
	}
}

// Operators of Kueue's and cert-controller's kind write their own caBundle, and Kubeflow has kinds of its own in kubeflow.org.
func TestLintHasNoErrorForWhatOperatorsDoAtRunTime(t *testing.T) {
	const operator = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: operator}
webhooks:
- name: notebooks.example.com
  clientConfig: {service: {name: webhook, namespace: operator}}
  rules: [{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [notebooks], scope: Namespaced}]
  sideEffects: None
  admissionReviewVersions: [v1]
`
	const role = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules: [{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [get, list, watch, VERB]}]
`
	for verb, status := range map[string]int{"update": exitOK, "patch": exitOK, "'*'": exitOK, "get": exitFound} {
		got := sallyportWith(t, operator+strings.Replace(role, "VERB", verb, 1), "lint", "-f", "-", "--rule", "ca-bundle,unknown-resource")
		if got.status != status || strings.Contains(got.stdout, "unknown-resource:") {
			t.Errorf("%s: %+v", verb, got)
		}
	}
	other := strings.Replace(strings.Replace(role, "VERB", "update", 1), "mutatingwebhookconfigurations]", "mutatingwebhookconfigurations], resourceNames: [another]", 1)
	if got := sallyportWith(t, operator+other, "lint", "-f", "-", "--rule", "ca-bundle"); got.status != exitFound {
		t.Errorf("a right to another configuration: %+v", got)
	}
	if got := sallyportWith(t, operator+strings.Replace(role, "VERB", "update", 1), "lint", "-f", "-", "--rule", "ca-bundle", "--severity", "info"); got.status != exitFound || !strings.Contains(got.stdout, "cannot be seen: ClusterRole operator lets it") {
		t.Errorf("the note: %+v", got)
	}
}
