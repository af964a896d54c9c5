// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what comes out to the files of testdata")

// then is the time that certificates of testdata are judged at.
var then = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// objects reads YAML documents. Their lines are the numbers of the documents.
func objects(t testing.TB, file string, data []byte) []Object {
	t.Helper()
	var out []Object
	for i, part := range bytes.Split(data, []byte("---\n")) {
		raw, err := yaml.YAMLToJSON(part)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var head struct {
			APIVersion, Kind string
			Metadata         struct {
				Name, Namespace     string
				Labels, Annotations map[string]string
			}
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, Object{
			APIVersion: head.APIVersion, Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name,
			Labels: head.Metadata.Labels, Annotations: head.Metadata.Annotations, Raw: raw,
			At: func(string) (string, int) { return file, i + 1 },
		})
	}
	return out
}

func inventory(t testing.TB, file string) *Inventory {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in, err := ReadFiles(objects(t, filepath.Base(file), data))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func known(t *testing.T, folder string) []Known {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "known.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []Known
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEveryRuleHasAnExampleThatItIsAbout runs each rule over what it has something to
// say about, and over what is right.
func TestEveryRuleHasAnExampleThatItIsAbout(t *testing.T) {
	for _, rule := range Rules() {
		if rule.check == nil {
			continue
		}
		t.Run(rule.ID, func(t *testing.T) {
			folder := filepath.Join("testdata", "rules", rule.ID)
			options := Options{Now: then, Rules: []string{rule.ID}, Known: known(t, folder), Resources: &Resources{ByGroup: map[string][]string{
				"": {"pods", "services"}, "apps": {"deployments"},
			}}}
			report := Run(inventory(t, filepath.Join(folder, "fail.yaml")), options)
			var got strings.Builder
			seen := map[Severity]bool{}
			for _, f := range report.Findings {
				seen[f.Severity] = true
				fmt.Fprintf(&got, "%d %s %s %s: %s\n", f.Line, f.Severity, f.Object, f.Webhook, f.Message)
			}
			for _, s := range report.Skipped {
				fmt.Fprintf(&got, "not checked: %s %v\n", s.Reason, s.Objects)
			}
			golden := filepath.Join(folder, "want.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, severity := range Severities() {
				if seen[severity] != slices.Contains(rule.Severities, severity) {
					t.Errorf("findings of severity %s: %v, declared: %v", severity, seen[severity], rule.Severities)
				}
			}
			if good := Run(inventory(t, filepath.Join(folder, "pass.yaml")), options); len(good.Findings) > 0 {
				t.Errorf("it finds something where nothing is wrong: %+v", good.Findings)
			}
		})
	}
}

func TestEveryRuleSaysWhatWhyAndWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	id := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, rule := range Rules() {
		if !id.MatchString(rule.ID) || seen[rule.ID] {
			t.Errorf("the ID %q", rule.ID)
		}
		seen[rule.ID] = true
		for _, text := range []string{rule.What, rule.Why, rule.Fix} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", rule.ID, text)
			}
		}
		if rule.Group == "" || rule.Source == "" || (rule.check == nil) != (len(rule.Severities) == 0) {
			t.Errorf("%s lacks a group, a source or severities", rule.ID)
		}
		if explained := rule.Explain(); !strings.Contains(explained, rule.What) || !strings.Contains(explained, rule.Why) || !strings.Contains(explained, rule.Fix) {
			t.Errorf("%s is explained as\n%s", rule.ID, explained)
		}
	}
	folders, err := os.ReadDir("testdata/rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !seen[folder.Name()] {
			t.Errorf("testdata/rules/%s belongs to no rule", folder.Name())
		}
	}
}
