// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

const root = "../../.."

func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	link, code := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile("`[^`\n]+`") // generics look like links
	for _, document := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(withoutCode(read(t, document)), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := document
			if target != "" {
				path = filepath.Join(filepath.Dir(document), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", document, m[1])
				continue
			}
			if anchor != "" && !anchors(read(t, path))[anchor] {
				t.Errorf("%s links to %s, but there is no such heading", document, m[1])
			}
		}
	}
}

func TestMakeTargetsThatDocumentsNameExist(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z -]*):`).FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		for name := range strings.FieldsSeq(m[1]) {
			targets[name] = true
		}
	}
	// In code: after a back quote, at the beginning of a line, or in a substitution.
	named := regexp.MustCompile("(?m)(?:`|^|\\$ |\\$\\()make (?:-s )?([a-z-]+)")
	seen := 0
	for _, document := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(read(t, document), -1) {
			seen++
			if !targets[m[1]] {
				t.Errorf("%s says make %s, which is no target", document, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document names a target")
	}
}

func TestEveryFieldOfAPodDefaultIsDocumented(t *testing.T) {
	text := read(t, filepath.Join(root, "docs/poddefault.md"))
	spec := reflect.TypeFor[v1alpha1.PodDefaultSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		inTable := regexp.MustCompile("(?m)^\\|[^|\n]*`" + name + "`")
		if name != "selector" && !inTable.MatchString(text) { // which the text describes
			t.Errorf("docs/poddefault.md has no row for spec.%s", name)
		}
	}
}

func TestExamplesAreObjectsThatTheAPIServerAccepts(t *testing.T) {
	folder := filepath.Join(root, "examples", "poddefaults")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	list := read(t, filepath.Join(folder, "README.md"))
	var pod corev1.Pod
	decode(t, read(t, filepath.Join(folder, "notebook-pod.yaml")), &pod)
	chosen := 0
	for _, file := range files {
		name := filepath.Base(file)
		if !strings.Contains(list, "`"+name+"`") {
			t.Errorf("README.md does not list %s", name)
		}
		if name == "notebook-pod.yaml" {
			continue
		}
		var pd v1alpha1.PodDefault
		decode(t, read(t, file), &pd)
		if pd.APIVersion != "kubeflow.org/v1alpha1" || pd.Kind != "PodDefault" {
			t.Errorf("%s is a %s %s", name, pd.APIVersion, pd.Kind)
		}
		// Kubeflow's forms answer 500 for a namespace that has one without.
		if len(pd.Spec.Selector.MatchLabels) == 0 {
			t.Errorf("%s: no matchLabels, which Kubeflow's forms cannot offer", name)
		}
		selector, err := metav1.LabelSelectorAsSelector(&pd.Spec.Selector)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			chosen++
			if name != "gcp-credentials.yaml" {
				t.Errorf("notebook-pod.yaml asks for %s too; the demo expects gcp-credentials alone", name)
			}
		}
	}
	if chosen != 1 || len(pod.Spec.Containers) != 2 {
		t.Errorf("notebook-pod.yaml asks for %d PodDefaults and has %d containers; the demo expects 1 and 2", chosen, len(pod.Spec.Containers))
	}
}

func TestTheREADMEShowsTheExampleThatTheDemoApplies(t *testing.T) {
	example := read(t, filepath.Join(root, "examples", "poddefaults", "gcp-credentials.yaml"))
	_, example, _ = strings.Cut(example, "\napiVersion")
	if !strings.Contains(read(t, filepath.Join(root, "README.md")), "```yaml\napiVersion"+example+"```") {
		t.Error("the YAML in README.md differs from gcp-credentials.yaml")
	}
}

func TestFoldersAndValuesThatTheInstallGuideNamesExist(t *testing.T) {
	var values map[string]any
	decode(t, read(t, filepath.Join(root, "charts", "sallyport", "values.yaml")), &values)
	text := read(t, filepath.Join(root, "docs", "install.md"))
	folders := regexp.MustCompile(`\b(?:config|charts)/[a-z/.-]+[a-z]`).FindAllString(text, -1)
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			t.Errorf("docs/install.md names %s, which is not there", folder)
		}
	}
	set := regexp.MustCompile(`--set ([A-Za-z.]+)=`).FindAllStringSubmatch(text, -1)
	for _, m := range set {
		var value any = values
		for _, key := range strings.Split(m[1], ".") {
			group, ok := value.(map[string]any)
			if value, ok = group[key], ok && group[key] != nil; !ok {
				t.Errorf("docs/install.md sets %s, which is not a value of the chart", m[1])
				break
			}
		}
	}
	if len(folders) == 0 || len(set) == 0 {
		t.Error("docs/install.md names no folder, or sets no value")
	}
}

// documents are all Markdown files of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\- ]`)
)

// anchors of the headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(withoutCode(text), -1) {
		anchor := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return out
}

var codeBlock = regexp.MustCompile("(?s)```.*?```")

func withoutCode(text string) string { return codeBlock.ReplaceAllString(text, "") }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}
