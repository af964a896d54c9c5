// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

const examplePolicies = "../../examples/policies"

func TestTestRunsCasesAndItsExitStatusTellsHowTheyEnded(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(examplePolicies)); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name, file, text string
		want             int
		says             string
	}{
		{"all pass", "", "", exitOK, "5 cases: 5 passed, 0 failed, 0 could not run"},
		{"one fails", "tests/load-balancer-is-denied/denied.txt", "another message\n", exitFound, "5 cases: 4 passed, 1 failed, 0 could not run"},
		{"one cannot run", "tests/trainer.suite.yaml", "cases: {", exitError, "3 cases: 1 passed, 1 failed, 1 could not run"},
	}
	for _, step := range steps {
		if step.file != "" {
			if err := os.WriteFile(filepath.Join(folder, step.file), []byte(step.text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got := sallyport(t, "test", "-f", folder)
		if got.status != step.want || !strings.Contains(got.stdout, step.says) {
			t.Errorf("%s: %+v", step.name, got)
		}
	}
}

func TestTestSaysWhatIsWrongWithItsFlags(t *testing.T) {
	got := sallyport(t, "test", "-f", examplePolicies, "--run", "(", "--parallel", "-1", "-o", "xml")
	for _, want := range []string{"--run: error parsing regexp", "--parallel must not be negative", `--output "xml": choose text, json, yaml, junit, sarif or github`} {
		if got.status != exitError || !strings.Contains(got.stderr, want) {
			t.Errorf("stderr does not say %q: %+v", want, got)
		}
	}
	if got := sallyport(t, "test", "-f", examplePolicies, "--run", "zzz"); got.status != exitError || !strings.Contains(got.stderr, `--run "zzz" selects none of 5 cases`) {
		t.Errorf("%+v", got)
	}
	if got := sallyport(t, "test"); got.status != exitError || !strings.Contains(got.stderr, "-f is required") {
		t.Errorf("%+v", got)
	}
	if got := sallyport(t, "test", "-f", "testdata/none"); got.status != exitError || !strings.Contains(got.stderr, "no such file") {
		t.Errorf("%+v", got)
	}
}

func TestReportsForCINameRulesWithPages(t *testing.T) {
	for _, args := range [][]string{
		{"lint", "-f", "../../testdata/manifests", "-o", "sarif"},
		{"review", "-f", examplePolicies + "/tests/service.yaml", "-f", examplePolicies + "/tests/deployment.yaml", "--webhooks", "*", "-o", "sarif"},
		{"test", "-f", examplePolicies, "-o", "sarif"},
	} {
		got := sallyport(t, args...)
		report, err := sarif.FromString(got.stdout)
		if err != nil {
			t.Errorf("%v: %v: %s", args, err, got.stderr)
			continue
		}
		rules := map[string]bool{}
		for _, rule := range report.Runs[0].Tool.Driver.Rules {
			rules[*rule.ID] = true
			if rule.HelpURI == nil || !strings.Contains(*rule.HelpURI, "/docs/") {
				t.Errorf("%v: the rule %s has no page", args, *rule.ID)
			}
		}
		for _, result := range report.Runs[0].Results {
			if !rules[*result.RuleID] {
				t.Errorf("%v: a result of %s, which is no rule", args, *result.RuleID)
			}
		}
		if want := args[0] != "test"; (len(report.Runs[0].Results) > 0) != want {
			t.Errorf("%v: %d results", args, len(report.Runs[0].Results))
		}
	}
}
