// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const hookText = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: hooks
  annotations: {lint.sallyport.io/ignore: %q}
webhooks:
- name: a.hooks.example.com
  clientConfig: {url: "https://hooks.example.com/a"}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]
  sideEffects: None
  admissionReviewVersions: [v1]
- name: b.hooks.example.com
  clientConfig: {url: "https://hooks.example.com/b"}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`

func reportOf(t *testing.T, text string, options Options) *Report {
	t.Helper()
	in, err := ReadFiles(objects(t, "x.yaml", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return Run(in, options)
}

func TestFindingsAreIgnoredWithAReasonOnly(t *testing.T) {
	for _, tc := range []struct {
		name, annotation string
		ignore           []Ignore
		found, ignored   int
		says             string
	}{
		{"nothing is ignored", "", nil, 2, 0, ""},
		{"a rule", "olm: nobody uses it", nil, 0, 2, ""},
		{"a rule for one webhook", "olm a.hooks.example.com: nobody uses it", nil, 1, 1, ""},
		{"several rules", "timeout,olm: nobody cares", nil, 0, 2, ""},
		{"another rule", "timeout: far away", nil, 2, 0, ""},
		{"no reason", "olm:", nil, 2, 0, "has no reason"},
		{"a rule that does not exist", "olmm: x", nil, 2, 0, `no rule "olmm"`},
		{"a problem beside a good line", "nonsense\nolm: nobody uses it", nil, 0, 2, "has no reason"},
		{"by an option", "", []Ignore{{Rule: "olm", Reason: "x"}}, 0, 2, ""},
		{"by an option for the object", "", []Ignore{{Rule: "olm", Object: "ValidatingWebhookConfiguration/hooks", Reason: "x"}}, 0, 2, ""},
		{"by an option for another object", "", []Ignore{{Rule: "olm", Object: "ValidatingWebhookConfiguration/other", Reason: "x"}}, 2, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(hookText, "%q", `"`+strings.ReplaceAll(tc.annotation, "\n", `\n`)+`"`, 1)
			report := reportOf(t, text, Options{Rules: []string{"olm"}, Ignore: tc.ignore})
			if len(report.Findings) != tc.found || len(report.Ignored) != tc.ignored {
				t.Errorf("found %+v, ignored %+v", report.Findings, report.Ignored)
			}
			for _, f := range report.Ignored {
				if f.Ignored == "" {
					t.Errorf("no reason: %+v", f)
				}
			}
			said := false
			for _, s := range report.Skipped {
				said = said || strings.Contains(s.Reason, tc.says)
			}
			if tc.says != "" && !said {
				t.Errorf("nothing says %q: %+v", tc.says, report.Skipped)
			}
		})
	}
}

func TestAnIgnoreOfTheCommandLine(t *testing.T) {
	for text, want := range map[string]Ignore{
		"olm=x":           {Rule: "olm", Reason: "x"},
		"olm@A/b/c = x=y": {Rule: "olm", Object: "A/b/c", Reason: "x=y"},
	} {
		if got, err := ParseIgnore(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "olm", "olm=", "olm= ", "nothing=x"} {
		if _, err := ParseIgnore(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestWhatMayNotBeSeenIsNeitherThereNorMissing(t *testing.T) {
	text := strings.Replace(hookText, `url: "https://hooks.example.com/a"`, "service: {namespace: a, name: b}", 1)
	all := objects(t, "x.yaml", []byte(strings.Replace(text, "%q", `""`, 1)))
	find := func(missing map[schema.GroupVersionKind]string) *Report {
		in, err := ReadCluster(all, missing)
		if err != nil {
			t.Fatal(err)
		}
		return Run(in, Options{Rules: []string{"service-exists"}})
	}
	if report := find(nil); len(report.Findings) != 1 || len(report.Skipped) != 0 {
		t.Errorf("in a cluster without it: %+v, %+v", report.Findings, report.Skipped)
	}
	report := find(map[schema.GroupVersionKind]string{{Version: "v1", Kind: "Service"}: "no permission"})
	if len(report.Findings) != 0 || len(report.Skipped) != 2 {
		t.Errorf("where Services may not be listed: %+v, %+v", report.Findings, report.Skipped)
	}
}

func TestObjectsThatCannotBeReadAreNamedAndOthersAreLookedAt(t *testing.T) {
	text := strings.Replace(hookText, "%q", `""`, 1) + `---
apiVersion: v1
kind: Service
metadata: {namespace: a, name: broken}
spec: {ports: [{port: many}]}
---
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: old}
---
apiVersion: a/b/c
kind: Thing
`
	in, err := ReadFiles(objects(t, "x.yaml", []byte(text)))
	if err == nil || !strings.Contains(err.Error(), "x.yaml:2: Service/a/broken cannot be read: spec.ports.port: want int32, got string") || !strings.Contains(err.Error(), "x.yaml:4") {
		t.Errorf("the error is %v", err)
	}
	if strings.Contains(err.Error(), "many") {
		t.Errorf("the error repeats a value: %v", err)
	}
	report := Run(in, Options{})
	if !slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Severity == Error }) {
		t.Errorf("what can be read was not looked at: %+v", report)
	}
	if len(in.Unread()) != 1 || !strings.Contains(in.Unread()[0].Reason, "policy/v1beta1") {
		t.Errorf("unread: %+v", in.Unread())
	}
}

func TestTheSameInputGivesTheSameReport(t *testing.T) {
	all := manyConfigurations(t)[:300]
	first := ""
	for range 3 {
		in, err := ReadFiles(all)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		report := Run(in, Options{Now: then})
		for _, f := range report.Findings {
			text.WriteString(f.Rule + f.Object + f.Webhook + f.Message + "\n")
		}
		for _, s := range report.Skipped {
			text.WriteString(s.Rule + s.Reason + strings.Join(s.Objects, ",") + "\n")
		}
		if first == "" {
			first = text.String()
		} else if first != text.String() {
			t.Fatal("the second report differs from the first")
		}
	}
}

// The fix of a finding is about that finding, not about others of the rule.
func TestRemediesFitTheFindings(t *testing.T) {
	for rule, wants := range map[string]map[string]string{
		"client-config":    {"url must use https": "https://", "exactly one of": "clientConfig.service", "a loopback address": "static manifest"},
		"match-conditions": {"which is not a qualified name": "letters, digits", "is used twice": "a name of its own", "does not compile": "Correct the expression", "reads object": "DELETE"},
		"name-fqdn":        {"is used twice": "a name of its own"},
		"review-versions":  {"names a version twice": "once"},
		"static":           {"must use clientConfig.url": "127.0.0.1"},
	} {
		archive := example(t, rule)
		report := Run(inventory(t, archive, "fail.yaml"), Options{Now: then, Rules: []string{rule}, Paths: servedPaths})
		for text, want := range wants {
			i := slices.IndexFunc(report.Findings, func(f Finding) bool { return strings.Contains(f.Message, text) })
			if i < 0 {
				t.Errorf("%s finds nothing that says %q", rule, text)
			} else if !strings.Contains(report.Findings[i].Fix, want) {
				t.Errorf("%s: the remedy of %q is %q", rule, report.Findings[i].Message, report.Findings[i].Fix)
			}
		}
	}
}
