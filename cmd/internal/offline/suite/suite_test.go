// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// common are the files that most cases use.
const common = `
-- proxy.yaml --
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: proxy, namespace: team-a}
spec:
  selector: {matchLabels: {proxy: "true"}}
  env: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}]
  tolerations: [{key: gpu, operator: Exists}]
-- pod.yaml --
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team-a, labels: {proxy: "true"}}
spec: {containers: [{name: main, image: "registry.example.com/web:1"}]}
-- service.yaml --
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team-a}
spec: {type: LoadBalancer, ports: [{port: 80}]}
-- services.yaml --
apiVersion: config.sallyport.io/v1alpha1
kind: SallyportConfiguration
webhooks: [{name: poddefault}, {name: servicetype}]
`

const head = "-- suite.yaml --\napiVersion: test.sallyport.io/v1alpha1\nkind: Suite\nwith: [proxy.yaml]\nconfig: services.yaml\ncases:\n"

// unpack extracts archives into a folder and makes it the working directory.
func unpack(t *testing.T, archives ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, archive := range archives {
		for _, file := range txtar.Parse([]byte(archive)).Files {
			path := filepath.Join(folder, file.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(folder)
	return folder
}

// results runs the cases in the working directory and returns a line for each problem.
func results(t *testing.T, o Options) string {
	t.Helper()
	cases, err := Load([]string{"."})
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	Run(t.Context(), cases, o, func(r *Result) {
		for _, problem := range r.Problems {
			fmt.Fprintf(&out, "%s: %s\n%s", r.Name, problem.Message, problem.Diff)
		}
		if r.Err != nil {
			fmt.Fprintf(&out, "%s: error: %v\n", r.Name, r.Err)
		}
		if r.Passed() {
			fmt.Fprintf(&out, "%s: ok\n", r.Name)
		}
		for _, file := range r.Updated {
			fmt.Fprintf(&out, "wrote %s\n", file)
		}
	})
	return out.String()
}

func TestCases(t *testing.T) {
	tests := []struct {
		name  string
		files string
		o     Options
		want  string
	}{
		{
			name: "values, absent paths and origins are compared",
			files: head + `
- name: right
  objects: [pod.yaml]
  expect:
    objects:
    - values:
        spec.containers[0].env[?(@.name=="HTTPS_PROXY")].value: http://proxy.example.com:3128
        "{.spec.tolerations[*].operator}": Exists
      absent: [spec.volumes, "spec.containers[3].name"]
      origins: {spec.tolerations: PodDefault team-a/proxy, "spec.containers[0].env[0].value": PodDefault team-a/proxy}
- name: wrong
  objects: [pod.yaml]
  expect:
    objects:
    - object: Pod/web
      values: {"spec.containers[0].image": "registry.example.com/web:2", spec.hostname: web}
      absent: [spec.tolerations]
      origins: {"spec.containers[0].image": PodDefault team-a/proxy}
`,
			want: `right: ok
wrong: Pod team-a/web: spec.containers[0].image: want "registry.example.com/web:2", got "registry.example.com/web:1"
wrong: Pod team-a/web: spec.hostname: want "web"; there is nothing
wrong: Pod team-a/web: spec.tolerations: want nothing, got [{"key":"gpu","operator":"Exists"}]
wrong: Pod team-a/web: spec.containers[0].image: want it from PodDefault team-a/proxy, got it from nothing
`,
		},
		{
			name: "allowed and denied, with the message",
			files: head + `
- {name: denied, objects: [service.yaml], expect: {allowed: false, message: LoadBalancer}}
- {name: another message, objects: [service.yaml], expect: {allowed: false, message: nonsense}}
- {name: should pass, objects: [service.yaml], expect: {}}
- {name: should not pass, objects: [pod.yaml], expect: {allowed: false}}
`,
			want: `denied: ok
another message: want a denial with "nonsense"; denied: Service team-a/web: servicetype.sallyport.io: service team-a/web: spec.type LoadBalancer is not allowed here: use ClusterIP with an Ingress or Gateway
should pass: want it allowed; denied: Service team-a/web: servicetype.sallyport.io: service team-a/web: spec.type LoadBalancer is not allowed here: use ClusterIP with an Ingress or Gateway
should not pass: want it denied; it was allowed
`,
		},
		{
			name: "what is expected of an object that did not come out",
			files: head + `
- {name: none, objects: [service.yaml], expect: {allowed: false, objects: [{absent: [spec]}]}}
- {name: other, objects: [pod.yaml], expect: {objects: [{object: Deployment, absent: [spec]}]}}
- {name: many, objects: [pod.yaml, pod.yaml], expect: {objects: [{absent: [spec.volumes]}]}}
`,
			want: `none: nothing came out to look at
other: no Deployment in the result, which has: Pod team-a/web
many: several objects came out: say object: Kind/name: Pod team-a/web, Pod team-a/web
`,
		},
		{
			name: "a case overrides its suite, and one can be chosen",
			files: head + `
- {name: other configuration, config: none.yaml, objects: [service.yaml], expect: {}}
- {name: not chosen, objects: [service.yaml], expect: {}}
-- none.yaml --
apiVersion: config.sallyport.io/v1alpha1
kind: SallyportConfiguration
webhooks: [{name: servicetype, settings: {forbidden: [NodePort]}}]
`,
			o:    Options{Run: regexp.MustCompile("suite.yaml/other")},
			want: "other configuration: ok\n",
		},
		{
			name: "a change, and its old object",
			files: head + `
- {name: still allowed, operation: UPDATE, objects: [service.yaml], old: [service.yaml], expect: {}}
- {name: without the old one, operation: UPDATE, objects: [service.yaml], expect: {}}
`,
			want: "still allowed: ok\n" +
				"without the old one: error: service.yaml:1: Service team-a/web: an UPDATE needs the object as it was, and there is no old object: name the file that has it by --old, or among --with\n",
		},
		{
			name: "one broken file does not stop the others",
			files: head + "- {name: right, objects: [pod.yaml], expect: {}}\n- {name: no such file, objects: [none.yaml], expect: {}}\n" + `
-- a.suite.yaml --
kind: [
-- b.suite.yaml --
apiVersion: test.sallyport.io/v1alpha1
kind: Suite
casses: []
-- c.suite.yaml --
apiVersion: v1
kind: Pod
`,
			want: `a.suite.yaml: error: a.suite.yaml:1: not YAML: did not find expected node content
b.suite.yaml: error: b.suite.yaml:3: unknown field "casses"
c.suite.yaml: error: c.suite.yaml:1: want apiVersion: test.sallyport.io/v1alpha1 and kind: Suite
right: ok
no such file: error: open none.yaml: no such file or directory
`,
		},
		{
			name: "all that is wrong in a suite is said at once",
			files: head + `
- {name: a, operation: PATCH, objects: [pod.yaml], expect: {message: x}}
- {name: a, warnings: Deny, user: {groups: [x]}, expect: {objects: [{}, {absent: ["{.a["]}]}}
- {objects: [pod.yaml]}
`,
			want: `suite.yaml: error: suite.yaml:7: cases[0].operation: "PATCH" is not one of CREATE, UPDATE or DELETE
suite.yaml:7: cases[0].expect.message: only a denial has a message: say allowed: false too
suite.yaml:8: cases[1].warnings: "Deny" is not one of Allow or Fail
suite.yaml:8: cases[1].user.username: every request has a user
suite.yaml:8: cases[1].expect.objects[0]: it expects nothing: say values, absent or origins
suite.yaml:8: cases[1].expect.objects[1].absent: {.a[: not a JSONPath: unterminated array
suite.yaml:8: cases[1].objects: name the files with the objects to review
suite.yaml:8: cases[1].name: "a" is the name of another case too
suite.yaml:9: cases[2].name: a case needs a name
`,
		},
		{
			name:  "a folder without cases",
			files: "",
			want:  ".: no test case: a suite is a file suite.yaml or *.suite.yaml of kind Suite, and a folder with object.yaml is a case\n",
		},
		{
			name: "whole objects and patches are compared",
			files: head + `
- {name: patch, objects: [service.yaml], config: none.yaml, expect: {patch: patch.json}}
- {name: object, objects: [service.yaml], config: none.yaml, expect: {want: want.yaml}}
- {name: missing, objects: [service.yaml], config: none.yaml, expect: {want: none}}
-- none.yaml --
apiVersion: config.sallyport.io/v1alpha1
kind: SallyportConfiguration
webhooks: [{name: servicetype, settings: {forbidden: [NodePort]}}]
-- patch.json --
[{"op": "add", "path": "/x", "value": 1}]
-- want.yaml --
# comments do not count, nor does the order of fields
kind: Service
apiVersion: v1
metadata: {name: web, namespace: team-a}
spec: {type: ClusterIP, ports: [{port: 80}]}
`,
			want: `patch: the patch differs from patch.json
--- patch.json
+++ result
@@ -1,7 +1 @@
-[
-  {
-    "op": "add",
-    "path": "/x",
-    "value": 1
-  }
-]
+[]
object: the objects that come out differ from want.yaml
--- want.yaml
+++ result
@@ -6,4 +6,4 @@
 spec:
   ports:
   - port: 80
-  type: ClusterIP
+  type: LoadBalancer
missing: error: none is not there: --update writes it
`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			unpack(t, common, test.files)
			if diff := cmp.Diff(test.want, results(t, test.o)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWarningsThatACaseDoesNotExpectFailItIfAsked(t *testing.T) {
	// Two PodDefaults set the service account differently: the last wins, with a warning to the
	// author.
	files := head + `
- {name: expected, warnings: Fail, objects: [pod.yaml], with: [conflict.yaml], expect: {warnings: [other]}}
- {name: unexpected, warnings: Fail, objects: [pod.yaml], with: [conflict.yaml], expect: {}}
- {name: not asked, objects: [pod.yaml], with: [conflict.yaml], expect: {}}
- {name: missing, objects: [pod.yaml], expect: {warnings: [other]}}
-- conflict.yaml --
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: other, namespace: team-a}
spec:
  selector: {matchLabels: {proxy: "true"}}
  serviceAccountName: a
---
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: third, namespace: team-a}
spec:
  selector: {matchLabels: {proxy: "true"}}
  serviceAccountName: b
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: b, namespace: team-a}}
`
	unpack(t, common, files)
	got := results(t, Options{})
	var names []string
	for line := range strings.Lines(got) {
		name, rest, _ := strings.Cut(line, ": ")
		names = append(names, name+": "+strings.Fields(rest)[0])
	}
	if diff := cmp.Diff([]string{"expected: ok", "unexpected: unexpected", "not asked: ok", "missing: want"}, names); diff != "" {
		t.Errorf("%s\n%s", diff, got)
	}
	if got := results(t, Options{FailOnWarnings: true, Run: regexp.MustCompile("not asked")}); !strings.Contains(got, "unexpected warning") {
		t.Errorf("got %s", got)
	}
}

func TestFoldersAreCasesAndUpdateWritesWhatTheyExpect(t *testing.T) {
	folder := unpack(t, strings.NewReplacer("-- pod.yaml", "-- pod/object.yaml", "-- proxy.yaml", "-- pod/with/proxy.yaml", "-- service.yaml", "-- service/object.yaml", "-- services.yaml", "-- service/config.yaml").Replace(common))
	for _, step := range []struct {
		o    Options
		want string
	}{
		{Options{}, "pod: error: pod/want.yaml is not there: --update writes it\nservice: error: service/want.yaml is not there: --update writes it\n"},
		{Options{Update: true}, "pod: ok\nwrote pod/want.yaml\nservice: ok\nwrote service/denied.txt\n"},
		{Options{Update: true}, "pod: ok\nservice: ok\n"},
		{Options{}, "pod: ok\nservice: ok\n"},
	} {
		if diff := cmp.Diff(step.want, results(t, step.o)); diff != "" {
			t.Fatalf("%+v: %s", step.o, diff)
		}
	}
	want, err := os.ReadFile(filepath.Join(folder, "pod", "want.yaml"))
	if err != nil || !strings.Contains(string(want), "HTTPS_PROXY") {
		t.Fatalf("%v: %s", err, want)
	}

	// Update preserves a comment as long as the content is correct.
	commented := "# why this is so\n" + string(want)
	if err := os.WriteFile("pod/want.yaml", []byte(commented), 0o666); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("pod: ok\nservice: ok\n", results(t, Options{Update: true})); diff != "" {
		t.Error(diff)
	}

	// No webhook is for the request any more.
	const untested = "service: nothing was tested: no webhook of the configuration covers Service team-a/web\n"
	if err := os.Remove("service/config.yaml"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("pod: ok\n"+untested+"service: want it denied; it was allowed\n", results(t, Options{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("pod: ok\n"+untested+"wrote service/want.yaml\n", results(t, Options{Update: true})); diff != "" {
		t.Error(diff)
	}
	if exists("service/denied.txt") {
		t.Error("denied.txt is still there")
	}
}

func TestCaseFileOfAFolder(t *testing.T) {
	unpack(t, common, `
-- a/object.yaml --
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team-a}
spec: {containers: [{name: main, image: x, ports: [{port: 80}]}]}
-- a/case.yaml --
apiVersion: test.sallyport.io/v1alpha1
kind: Case
name: lenient
validate: ignore
expect: {objects: [{absent: [spec.volumes]}]}
-- b/object.yaml --
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team-a}
spec: {containers: [{name: main, image: x}]}
-- b/case.yaml --
apiVersion: test.sallyport.io/v1alpha1
kind: Case
expects: {}
`)
	want := "lenient: ok\ncase.yaml: error: b/case.yaml:3: unknown field \"expects\"\n"
	if diff := cmp.Diff(want, results(t, Options{})); diff != "" {
		t.Error(diff)
	}
}

func TestOutputsTellTheSame(t *testing.T) {
	unpack(t, common, head+`
- {name: right, objects: [pod.yaml], expect: {}}
- {name: wrong, objects: [pod.yaml], expect: {allowed: false}}
- {name: broken, objects: [none.yaml], expect: {}}
`)
	cases, err := Load([]string{"suite.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range Outputs {
		var out strings.Builder
		p := Printer{Out: &out, Output: output}
		Run(context.Background(), cases, Options{}, p.Print)
		n, err := p.End(0)
		if err != nil || n != (Counts{Failed: 1, Broken: 1}) {
			t.Errorf("%s: %+v, %v", output, n, err)
		}
		for _, part := range []string{"want it denied; it was allowed", "none.yaml"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s lacks %q:\n%s", output, part, out.String())
			}
		}
		if output == "json" && !json.Valid([]byte(out.String())) {
			t.Errorf("not JSON: %s", out.String())
		}
	}
}

func TestResultsKeepTheOrderOfTheCases(t *testing.T) {
	var suite strings.Builder
	suite.WriteString(head)
	const n = 200
	for i := range n {
		fmt.Fprintf(&suite, "- {name: case %d, objects: [pod.yaml], expect: {objects: [{absent: [spec.volumes]}]}}\n", i)
	}
	unpack(t, common, suite.String())
	lines := strings.Split(strings.TrimSpace(results(t, Options{Parallel: 8})), "\n")
	for i, line := range lines {
		if want := fmt.Sprintf("case %d: ok", i); line != want {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if len(lines) != n {
		t.Errorf("%d results", len(lines))
	}
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	unpack(t, common, head+"- {name: right, objects: [pod.yaml], expect: {}}\n")
	cases, err := Load([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Run(ctx, cases, Options{}, func(r *Result) {
		if r.Passed() {
			t.Error("it passed")
		}
	})
}

// FuzzSuite: any file gives cases or an error.
func FuzzSuite(f *testing.F) {
	f.Add([]byte(head[strings.Index(head, "\n")+1:] + "- {name: right, objects: [pod.yaml], expect: {objects: [{values: {a: 1}}]}}\n"))
	f.Add([]byte("kind: Suite\napiVersion: test.sallyport.io/v1alpha1\ncases: [{expect: {objects: [{absent: ['{.a[']}]}}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, err := parseSuite("suite.yaml", data)
		if (err == nil) == (len(cases) == 0) {
			t.Errorf("%d cases, error %v", len(cases), err)
		}
	})
}

// The repository that docs/testing.md tells readers to copy.
func TestTheExamplePasses(t *testing.T) {
	t.Chdir("../../../../examples/policies")
	const want = `load-balancer-is-denied: ok
notebook-gets-the-proxy: ok
a trainer gets the proxy and the GPU pool: ok
a gateway may have a load balancer: ok
nothing else may: ok
`
	if diff := cmp.Diff(want, results(t, Options{FailOnWarnings: true})); diff != "" {
		t.Error(diff)
	}
}

// TestACaseThatProvesNothingIsNotGreen has cases that once passed, whatever the policies were.
func TestACaseThatProvesNothingIsNotGreen(t *testing.T) {
	unpack(t, common, head+`
- {name: a typo, objects: [pod.yaml], expect: {objects: [{absent: [spec.tolerationz]}]}}
- {name: a typo in a list, objects: [pod.yaml], expect: {objects: [{absent: ['spec.containers[0].evn', 'spec.containers[?(@.name=="x")].image', metadata.labels.any]}]}}
- {name: covered by none, objects: [configmap.yaml], expect: {}}
- {name: a PodDefault that can never work, objects: [pod.yaml], with: [never.yaml], expect: {}}
- {name: one that the cluster has stored, objects: [pod.yaml], with: [stored.yaml], expect: {}}
- {name: another namespace, objects: [nowhere.yaml], expect: {}}
- {name: another namespace on purpose, namespace: team-b, objects: [nowhere.yaml], expect: {}}
-- configmap.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
-- nowhere.yaml --
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
-- never.yaml --
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: never, namespace: team-a}, spec: {selector: {}, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nothing}}}]}}
-- stored.yaml --
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: never, namespace: team-a, uid: a}, spec: {selector: {}, volumes: [{name: UPPER}]}}
-- folder/object.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
-- folder/want.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
`)
	got := results(t, Options{})
	for _, want := range []string{
		"a typo: Pod team-a/web: absent: spec.tolerationz: Pod has no field tolerationz: did you mean tolerations?\n",
		"a typo in a list: Pod team-a/web: absent: spec.containers[0].evn: Pod has no field evn: did you mean env?\nc",
		"covered by none: nothing was tested: no webhook of the configuration covers ConfigMap",
		"a PodDefault that can never work: error: never.yaml:1: ",
		"one that the cluster has stored: ok\n",
		"another namespace: Pod p is in the namespace default, but the PodDefaults are in team-a: say the namespace",
		"another namespace on purpose: ok\n",
		"folder: nothing was tested",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not %q in\n%s", want, got)
		}
	}
	cases, err := Load([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Line == 0 || filepath.Ext(c.File) == "" {
			t.Errorf("%s is at %s:%d", c.Title(), c.File, c.Line)
		}
	}
	for output, want := range map[string][]string{
		"text":   {"WARN  suite.yaml/one that the cluster has stored (suite.yaml:11)", "ERROR suite.yaml/a PodDefault that can never work (suite.yaml:10)", "can never work and is left out"},
		"junit":  {"stored.yaml:1: PodDefault team-a/never can never work", `type="case-failed"`},
		"github": {"::warning file=suite.yaml,line=11", "::error file=folder/object.yaml,line=1", "::error file=never.yaml,line=1"},
	} {
		var out strings.Builder
		printer := Printer{Out: &out, Output: output}
		Run(t.Context(), cases, Options{}, printer.Print)
		if _, err := printer.End(0); err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: not %q in\n%s", output, want, out.String())
			}
		}
	}
}

func TestACaseThatDependsOnWhatIsNotThereIsUnknown(t *testing.T) {
	unpack(t, common, head+`
- {name: batch, objects: [pod.yaml], with: [batch.yaml], expect: {}}
-- batch.yaml --
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: batch, namespace: team-a}
spec:
  selector: {matchLabels: {proxy: "true"}}
  priorityClassName: batch
`)
	cases, err := Load([]string{"suite.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	const what = "whether the PriorityClass batch exists, which PodDefault team-a/batch sets"
	for output, level := range map[string]string{"text": "UNKNOWN", "json": `"unknown"`, "junit": "<error", "github": "::error"} {
		var out strings.Builder
		p := Printer{Out: &out, Output: output}
		Run(t.Context(), cases, Options{}, p.Print)
		if n, err := p.End(0); err != nil || n != (Counts{Unknown: 1}) || !strings.Contains(out.String(), what) || !strings.Contains(out.String(), level) {
			t.Errorf("%s: %+v, %v\n%s", output, n, err, out.String())
		}
		out.Reset()
		p = Printer{Out: &out, Output: output}
		Run(t.Context(), cases, Options{AllowUnknown: true}, p.Print)
		if n, err := p.End(0); err != nil || n != (Counts{}) || !strings.Contains(out.String(), what) || strings.Contains(out.String(), level) {
			t.Errorf("%s, allowed: %+v, %v\n%s", output, n, err, out.String())
		}
	}
}
