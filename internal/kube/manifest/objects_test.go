// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

const podYAML = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: "

func TestObjectsAreFoundWithTheirLines(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text string
		want       string // "<line> <kind> <name>", …
	}{
		"one document":                                   {text: podYAML + "a\n", want: "1 Pod a"},
		"a document without a line end":                  {text: podYAML + "a", want: "1 Pod a"},
		"comments and blank lines before the first":      {text: "# about\n\n   # more\n" + podYAML + "a\n", want: "4 Pod a"},
		"a marker before the first":                      {text: "# about\n---\n" + podYAML + "a\n", want: "3 Pod a"},
		"several documents":                              {text: podYAML + "a\n---\n" + podYAML + "b\n---\n" + podYAML + "c\n", want: "1 Pod a, 6 Pod b, 11 Pod c"},
		"empty documents and null between":               {text: "---\n---\n# x\n---\nnull\n---\n" + podYAML + "a\n---\n~\n---\n", want: "7 Pod a"},
		"a comment behind a marker":                      {text: "--- # first\n" + podYAML + "a\n---   \n" + podYAML + "b\n", want: "2 Pod a, 7 Pod b"},
		"a document that begins behind its marker":       {text: "--- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\t{apiVersion: v1, kind: Pod}\n", want: "1 Pod a, 2 Pod "},
		"the end marker":                                 {text: podYAML + "a\n...\n" + podYAML + "b\n...\n---\n" + podYAML + "c\n", want: "1 Pod a, 6 Pod b, 12 Pod c"},
		"a directive":                                    {text: "%YAML 1.2\n---\n" + podYAML + "a\n", want: "3 Pod a"},
		"what looks like a marker in a text":             {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    y\n  z: ---z\n", want: "1 ConfigMap a"},
		"Windows line ends":                              {text: strings.ReplaceAll("# x\n"+podYAML+"a\n---\n\n"+podYAML+"b\n", "\n", "\r\n"), want: "2 Pod a, 8 Pod b"},
		"a byte order mark":                              {text: "\ufeff# x\n" + podYAML + "a\n", want: "2 Pod a"},
		"UTF-16, little end first":                       {text: "\xff\xfe" + utf16Bytes(podYAML+"a\n---\n"+podYAML+"b\n", 0, 1), want: "1 Pod a, 6 Pod b"},
		"UTF-16, big end first":                          {text: "\xfe\xff" + utf16Bytes(podYAML+"ä\n", 1, 0), want: "1 Pod ä"},
		"anchors":                                        {text: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: &n a\n  labels:\n    app: *n\n", want: "1 Pod a"},
		"JSON":                                           {file: "a.json", text: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, want: "1 Pod a"},
		"JSON indented by tabs":                          {text: "\n{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\"\n}\n", want: "2 Pod "},
		"JSON values that follow each other":             {text: "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n\n{\n\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}} {\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n", want: "1 Pod a, 3 Pod b, 4 Pod "},
		"JSON between YAML":                              {text: podYAML + "a\n---\n# x\n{\"apiVersion\":\"v1\",\n\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}\n---\n" + podYAML + "c\n", want: "1 Pod a, 7 Pod b, 10 Pod c"},
		"braces that are YAML":                           {text: "{apiVersion: v1, kind: Pod, # x\n \"metadata\": {name: a,},}\n", want: "1 Pod a"},
		"a List":                                         {text: "apiVersion: v1\nkind: List\nitems:\n- " + indentText(podYAML+"a") + "\n\n- " + indentText(podYAML+"b") + "\n", want: "4 Pod a, 9 Pod b"},
		"a List in a List":                               {text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", want: "7 Pod a"},
		"a list of one type, whose items do not name it": {text: "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefaultList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n", want: "4 PodDefault a, 5 PodDefault b"},
		"a List in JSON":                                 {text: "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\"},\n\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}]}", want: "2 Pod , 4 Pod "},
		"an empty List":                                  {text: "apiVersion: v1\nkind: List\nitems: []\n", want: ""},
		"a List without items":                           {text: "apiVersion: v1\nkind: List\n", want: ""},
		"a kind that only sounds like a list":            {text: "apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\nitems: everything\n", want: "1 AllowList a"},
		"a kind with items that is not a list":           {text: "apiVersion: example.com/v1\nkind: Menu\nmetadata: {name: a}\nitems: [soup]\n", want: "1 Menu a"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, documents, err := Parse(orElse(tc.file, "a.yaml"), []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				line, ok := strings.CutPrefix(o.At(), orElse(tc.file, "a.yaml")+":")
				if !ok {
					t.Errorf("at %s", o.At())
				}
				got = append(got, line+" "+o.Kind+" "+o.Name)
			}
			if joined := strings.Join(got, ", "); joined != tc.want {
				t.Errorf("got %q, want %q", joined, tc.want)
			}
			if documents == 0 {
				t.Error("no document was counted")
			}
		})
	}
}

func TestProblemsAreToldWithFileAndLine(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text string
		want       []string
	}{
		"no Kubernetes object":              {text: "# x\n\nreplicas: 3\n", want: []string{"a.yaml:3: not a Kubernetes object: it has no apiVersion and no kind"}},
		"no kind":                           {text: "apiVersion: v1\n", want: []string{"a.yaml:1: not a Kubernetes object: it has no kind"}},
		"no apiVersion":                     {text: podYAML + "a\n---\nkind: Pod\n", want: []string{"a.yaml:6: not a Kubernetes object: it has no apiVersion"}},
		"an apiVersion with two slashes":    {text: "kind: Pod\napiVersion: a/b/c\n", want: []string{"a.yaml:2: apiVersion: unexpected GroupVersion string: a/b/c"}},
		"a text":                            {text: "\nhello\n", want: []string{"a.yaml:2: not a Kubernetes object but a string"}},
		"a number":                          {text: "5\n", want: []string{"a.yaml:1: not a Kubernetes object but a number"}},
		"a boolean":                         {text: "yes\n", want: []string{"a.yaml:1: not a Kubernetes object but a boolean"}},
		"a sequence":                        {text: "- a\n- b\n", want: []string{"a.yaml:1: not a Kubernetes object but a sequence"}},
		"a sequence in JSON":                {text: "[{}]", want: []string{"a.yaml:1: not a Kubernetes object but a sequence"}},
		"a name that is a number":           {text: podYAML + "5\n", want: []string{"a.yaml:4: metadata.name: want a string, got a number: put it in quotes"}},
		"a label that is a boolean":         {text: podYAML + "a\n  labels:\n    x: y\n    example.com/on: true\n", want: []string{"a.yaml:7: metadata.labels[example.com/on]: want a string, got a boolean: put it in quotes"}},
		"metadata that is a sequence":       {text: "apiVersion: v1\nkind: Pod\nmetadata: []\n", want: []string{"a.yaml:3: metadata: want a mapping, got a sequence"}},
		"an invalid time":                   {text: podYAML + "a\n  creationTimestamp: yesterday\n", want: []string{"a.yaml:5: metadata.creationTimestamp: parsing time"}},
		"a line end in a name":              {text: podYAML + "a\n  labels: {\"x\\ny\": 1}\n", want: []string{`a.yaml:5: metadata.labels.x\ny: want a string, got a number`}},
		"a tab":                             {text: "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n", want: []string{"a.yaml:4: not YAML: found character that cannot start any token: the line begins with a tab, indent it by spaces"}},
		"a name that stands twice":          {text: "# x\n---\n" + podYAML + "a\n  name: b\n", want: []string{"a.yaml:7: not YAML: key \"name\" already set in map"}},
		"names that stand twice":            {text: podYAML + "a\n  name: b\nkind: Pod\n", want: []string{"a.yaml:5: not YAML: key \"name\"", "a.yaml:6: not YAML: key \"kind\""}},
		"a name that stands twice, in JSON": {file: "a.json", text: "{\n\"apiVersion\": \"v1\",\n\"apiVersion\": \"v1\"}", want: []string{"a.json:3: not JSON: duplicate key apiVersion"}},
		"Windows line ends":                 {text: strings.ReplaceAll("# x\n"+podYAML+"a\n---\n"+podYAML+"b\n  name: c\n", "\n", "\r\n"), want: []string{"a.yaml:11: not YAML: key"}},
		"a line that stands too far left":   {text: "  apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\nspec: {}\n", want: []string{"a.yaml:5: not YAML: unexpected content"}},
		"text behind braces":                {text: "{apiVersion: v1,\nkind: Pod}\nspec: {}\n", want: []string{"a.yaml:3: not YAML: unexpected content"}},
		"a bracket that is not closed":      {text: "apiVersion: v1\nargs: [a\nkind: Pod\n", want: []string{"a.yaml:3: not YAML: did not find expected ',' or ']'"}},
		"a colon too many":                  {text: podYAML + "a: b\n", want: []string{"a.yaml:4: not YAML: mapping values are not allowed in this context"}},
		"an unknown anchor":                 {text: podYAML + "*a\n", want: []string{"a.yaml:1: not YAML: unknown anchor 'a' referenced"}},
		"aliases without end":               {text: bomb(), want: []string{"a.yaml:1: not YAML: document contains excessive aliasing"}},
		"bytes that are not UTF-8":          {text: podYAML + "\xff\n", want: []string{"a.yaml:1: not YAML: invalid leading UTF-8 octet"}},
		"a file of bytes":                   {text: "\x00\x01\x02", want: []string{"a.yaml:1: not YAML: control characters are not allowed"}},
		"truncated JSON":                    {file: "a.json", text: "{\n\"apiVersion\":", want: []string{"a.json:2: not JSON: unexpected EOF"}},
		"a value that JSON does not have":   {file: "a.json", text: "{\n\"apiVersion\": v1}", want: []string{"a.json:2: not JSON: invalid character 'v'"}},
		"the second of several JSON values": {file: "a.json", text: "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n{\"apiVersion\":\"v1\"}\n", want: []string{"a.json:2: not a Kubernetes object: it has no kind"}},
		"braces that are neither":           {text: "\n{\"apiVersion\": \"v1\",\n\"a\" \"b\"}\n", want: []string{"a.yaml:3: not JSON: invalid character '\"'"}},
		"an item of a List":                 {text: "apiVersion: v1\nkind: List\nitems:\n- " + indentText(podYAML+"a") + "\n- kind: Pod\n", want: []string{"a.yaml:8: not a Kubernetes object: it has no apiVersion"}},
		"a field of an item of a List":      {text: "apiVersion: v1\nkind: List\nitems:\n- " + indentText(podYAML+"{}") + "\n", want: []string{"a.yaml:7: items[0].metadata.name: want a string, got a mapping"}},
		"an item in JSON":                   {file: "a.json", text: "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\"},\n5]}", want: []string{"a.json:3: not a Kubernetes object but a number"}},
		"items that are not a sequence":     {text: "apiVersion: v1\nkind: List\nitems: x\n", want: []string{"a.yaml:3: items: want a sequence, got a string"}},
		"a number that JSON does not have":  {text: podYAML + "a\nspec: {x: .nan}\n", want: []string{"a.yaml:1: not YAML: json: unsupported value"}},
		"a mapping as a key":                {text: podYAML + "a\n? {b: c}\n: d\n", want: []string{"a.yaml:1: not YAML: invalid map key"}},
		"mistakes in several documents": {text: "x: 1\n---\n" + podYAML + "a\n---\na: b: c\n---\n" + podYAML + "5\n", want: []string{
			"a.yaml:1: not a Kubernetes object", "a.yaml:8: not YAML: mapping values", "a.yaml:13: metadata.name: want a string",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse(orElse(tc.file, "a.yaml"), []byte(tc.text))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			for _, want := range tc.want {
				found := false
				for _, line := range lines {
					found = found || strings.HasPrefix(line, want)
				}
				if !found {
					t.Errorf("no line begins with\n%s\nin\n%v", want, err)
				}
			}
			if len(lines) != len(tc.want) {
				t.Errorf("%d mistakes are told, not %d:\n%v", len(lines), len(tc.want), err)
			}
		})
	}
}

func TestFoldersAreReadInTheOrderOfNamesWithoutHiddenFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": podYAML + "b\n", "a/z.yml": podYAML + "a-z\n", "c.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}`,
		"empty.yaml": "# nothing yet\n", "notes.txt": "not: [an object", ".hidden.yaml": "not: [an object", ".github/workflow.yaml": "on: push\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Read([]string{folder}, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"a-z", "b", "c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A hidden folder is read if it is given explicitly.
	if objects, err := Read([]string{filepath.Join(folder, ".github")}, nil); err == nil || len(objects) != 0 ||
		!strings.Contains(err.Error(), "workflow.yaml:1: ") {
		t.Errorf("got %v, %v", objects, err)
	}
}

// FuzzParse: no input panics, each error names the file and an existing line, and each object
// has a type and a line.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		podYAML + "a\n---\n" + podYAML + "5\n", "# x\n---\n...\n%YAML 1.2\n---\na: b\n", "a: [1\nb: 2\n", "  a: 1\nb: 2\n", "- a\n\t- b\n",
		"apiVersion: v1\nkind: List\nitems:\n- {}\n- kind: Pod\n- null\n", "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: [a]}\n",
		`{"apiVersion":"v1","kind":"Pod"}` + "\n" + `{"apiVersion":"v1","kind":"Pod","kind":1}`, "{a: b}\r\n{c: d}\r\n", "[\n1,\n", "\xff\xfea\x00", "\xff\xfe", "\ufeff{",
		"a: &a [*a]\n", "a: &a {b: 1}\nc: {<<: *a}\n", "? a\n: b\n", "a: |\n  ---\n---\n--- x\n---\t#\n", "a: 1\na: 2\nb: 1\nb: 2\n", "--- |\n{\n", "{\"a\":\n\n\"\\ud800\"}",
		"apiVersion: a/b/c\nkind: \"\\n\"\n", "kind: List\napiVersion: v1\nitems: {}\n", "'\n'", "\x00", ".nan", "!!binary x", "<<: x", "metadata: {ownerReferences: [{controller: 1}]}",
		"0: 0\n1: 0\n2: 0\r\r\rmetadata: 000", "kind: a\u2028\u0085metadata: 0",
	} {
		f.Add([]byte(seed))
	}
	mistake := regexp.MustCompile(`^fuzz\.yaml:([0-9]+): .`)
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, documents, err := Parse("fuzz.yaml", data)
		lines := strings.Count(string(decodeText(data)), "\n") + 1
		if err != nil {
			for text := range strings.SplitSeq(err.Error(), "\n") {
				m := mistake.FindStringSubmatch(text)
				if m == nil {
					t.Fatalf("no file and line in %q of %q", text, err)
				}
				if line, err := strconv.Atoi(m[1]); err != nil || line < 1 || line > lines {
					t.Errorf("line %s of %d: %q", m[1], lines, text)
				}
			}
		}
		for _, o := range objects {
			if o.APIVersion == "" || o.Kind == "" || o.Raw.Kind() != '{' || documents == 0 {
				t.Errorf("object %+v of %d documents", o, documents)
			}
			var line int
			if _, err := fmt.Sscanf(o.At(), "fuzz.yaml:%d", &line); err != nil || line < 1 || line > lines {
				t.Errorf("object at %s of %d lines: %v", o.At(), lines, err)
			}
		}
	})
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// indentText indents all lines but the first, like an unindented list element.
func indentText(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// utf16Bytes encodes a text. low and high are the offsets of a unit's bytes.
func utf16Bytes(text string, low, high int) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		pair := make([]byte, 2)
		pair[low], pair[high] = byte(unit), byte(unit>>8)
		out = append(out, pair...)
	}
	return string(out)
}

// bomb returns a small document that expands to a large one.
func bomb() string {
	var out strings.Builder
	out.WriteString("a: &a [" + strings.Repeat("x,", 9) + "x]\n")
	for c := 'b'; c < 'i'; c++ {
		_, _ = fmt.Fprintf(&out, "%c: &%c [%sx]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	return out.String()
}
