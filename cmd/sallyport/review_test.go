// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The objects of most tests: two pods, one of which selects the PodDefault, and a third that
// conflicts with it.
const (
	podDefaultYAML = `apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata:
  name: proxy
spec:
  selector:
    matchLabels:
      proxy: "true"
  env:
  - name: HTTP_PROXY
    value: http://user:s3cret@proxy.example.com/?a=1&b=<2>
`
	matchingYAML = `apiVersion: v1
kind: Pod
metadata:
  name: matching
  labels:
    proxy: "true"
spec:
  activeDeadlineSeconds: 9007199254740993
  containers:
  - name: main
    image: registry.example.com/main:1
    command: [sh, -c, "a && b > c"]
`
	otherYAML = `apiVersion: v1
kind: Pod
metadata:
  name: other
spec:
  containers:
  - name: main
    image: registry.example.com/main:1
`
	conflictingYAML = `apiVersion: v1
kind: Pod
metadata:
  name: conflicting
  labels:
    proxy: "true"
spec:
  containers:
  - name: main
    image: registry.example.com/main:1
    env:
    - name: HTTP_PROXY
      value: http://t0psecret.example.com
`
)

func TestAllowedObjectsEndWithStatus0(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	sallyportWith(t, otherYAML, "review", "-f", "-", "--with", with).want(t, exitOK, "Pod other: allowed, unchanged\n", "")

	changed := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with).wantOK(t)
	if !strings.HasPrefix(changed, "Pod matching: allowed, changed by poddefault.sallyport.io\n") {
		t.Errorf("printed\n%s", changed)
	}
}

func TestDeniedObjectsEndWithStatus3AndAMessageWithoutValues(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	for _, output := range []string{review.OutputDiff, review.OutputYAML, review.OutputJSON, review.OutputPatch} {
		t.Run(output, func(t *testing.T) {
			got := sallyportWith(t, conflictingYAML, "review", "-f", "-", "--with", with, "-o", output)
			if got.status != exitDenied || got.stdout != "" {
				t.Errorf("status %d, stdout %q", got.status, got.stdout)
			}
			for _, part := range []string{"denied: Pod conflicting: poddefault.sallyport.io: conflict occurred", "HTTP_PROXY", "PodDefault default/proxy"} {
				if !strings.Contains(got.stderr, part) {
					t.Errorf("stderr does not say %q:\n%s", part, got.stderr)
				}
			}
			if strings.Contains(got.stderr, "s3cret") || strings.Contains(got.stderr, "t0psecret") {
				t.Errorf("stderr gives a value away:\n%s", got.stderr)
			}
		})
	}
}

func TestOneDeniedObjectAmongOthersIsLeftOut(t *testing.T) {
	all := otherYAML + "---\n" + conflictingYAML + "---\n" + matchingYAML
	got := sallyportWith(t, all, "review", "-f", "-", "--with", file(t, "with.yaml", podDefaultYAML), "-o", "yaml")
	if got.status != exitDenied {
		t.Errorf("status %d", got.status)
	}
	if names := namesOf(t, got.stdout); !cmp.Equal(names, []string{"other", "matching"}) {
		t.Errorf("printed %v", names)
	}
}

func TestSeveralFilesComeOutAsSeparateDocuments(t *testing.T) {
	args := []string{
		"review", "--with", file(t, "with.yaml", podDefaultYAML),
		"-f", file(t, "a.yaml", matchingYAML), "-f", file(t, "b.yaml", otherYAML), "-f", "-",
	}
	third := strings.Replace(otherYAML, "name: other", "name: third", 1)
	for _, output := range []string{review.OutputYAML, review.OutputJSON} {
		t.Run(output, func(t *testing.T) {
			out := sallyportWith(t, third, append(args, "-o", output)...).wantOK(t)
			if names := namesOf(t, out); !cmp.Equal(names, []string{"matching", "other", "third"}) {
				t.Errorf("printed %v:\n%s", names, out)
			}
			if output == review.OutputYAML && strings.Count(out, "\n---\n") != 2 {
				t.Errorf("the documents are not separate:\n%s", out)
			}
		})
	}
}

func TestResultsReviewedAgainAreUnchanged(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	for _, output := range []string{review.OutputYAML, review.OutputJSON} {
		t.Run(output, func(t *testing.T) {
			first := sallyportWith(t, matchingYAML+"---\n"+otherYAML, "review", "-f", "-", "--with", with, "-o", output).wantOK(t)
			if !strings.Contains(first, "HTTP_PROXY") || !strings.Contains(first, "9007199254740993") {
				t.Fatalf("first:\n%s", first)
			}
			if strings.Contains(first, `\u00`) {
				t.Errorf("characters are escaped without need:\n%s", first)
			}
			second := sallyportWith(t, first, "review", "-f", "-", "--with", with, "-o", output).wantOK(t)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("second review (-first +second):\n%s", diff)
			}
			sallyportWith(t, first, "review", "-f", "-", "--with", with).want(t, exitOK,
				"Pod matching: allowed, unchanged\nPod other: allowed, unchanged\n", "2 objects: 2 allowed, 0 of them changed, 0 denied\n")
			if patches := sallyportWith(t, first, "review", "-f", "-", "--with", with, "-o", "patch").wantOK(t); patches != "[]\n[]\n" {
				t.Errorf("patches %q", patches)
			}
		})
	}
}

func TestPatchAppliedToTheInputIsTheResult(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	patch := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "-o", "patch").wantOK(t)
	result := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "-o", "json").wantOK(t)
	wantJSON(t, result, applyPatch(t, matchingYAML, []byte(patch)))
}

func TestReviewOutputIsTheAnswerOnTheWire(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	answer := func(t *testing.T, pod string, status int) *admissionv1.AdmissionReview {
		t.Helper()
		got := sallyportWith(t, pod, "review", "-f", "-", "--with", with, "-o", "review")
		if got.status != status {
			t.Fatalf("status %d, stderr:\n%s", got.status, got.stderr)
		}
		if again := sallyportWith(t, pod, "review", "-f", "-", "--with", with, "-o", "review"); again != got {
			t.Errorf("the same input gives another answer:\n%s\n%s", got.stdout, again.stdout)
		}
		var review admissionv1.AdmissionReview
		if err := yaml.UnmarshalStrict([]byte(got.stdout), &review); err != nil {
			t.Fatalf("%v in\n%s", err, got.stdout)
		}
		if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil || len(review.Response.UID) != 36 {
			t.Fatalf("answer:\n%s", got.stdout)
		}
		return &review
	}
	t.Run("with a patch", func(t *testing.T) {
		response := answer(t, matchingYAML, exitOK).Response
		if !response.Allowed || response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
			t.Fatalf("response %+v", response)
		}
		result := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "-o", "json").wantOK(t)
		wantJSON(t, result, applyPatch(t, matchingYAML, response.Patch))
	})
	t.Run("without a change", func(t *testing.T) {
		if response := answer(t, otherYAML, exitOK).Response; !response.Allowed || response.Patch != nil {
			t.Errorf("response %+v", response)
		}
	})
	t.Run("denied", func(t *testing.T) {
		response := answer(t, conflictingYAML, exitDenied).Response
		if response.Allowed || response.Result == nil || !strings.Contains(response.Result.Message, "conflict occurred") {
			t.Errorf("response %+v", response)
		}
	})
}

func TestOnlyOperationsThatAWebhookHasRulesForReachIt(t *testing.T) {
	with, old := file(t, "with.yaml", podDefaultYAML), file(t, "old.yaml", matchingYAML)
	for operation, more := range map[string][]string{"UPDATE": {"--old", old}, "DELETE": nil} {
		sallyportWith(t, matchingYAML, append([]string{"review", "-f", "-", "--with", with, "--operation", operation}, more...)...).want(t, exitOK,
			"Pod matching: allowed, unchanged\n", "note: stdin:1: no webhook is called for "+operation+" of Pod matching\n")
	}
	sallyportWith(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n", "review", "-f", "-").want(t, exitOK,
		"ConfigMap settings: allowed, unchanged\n", "note: stdin:1: no webhook is called for CREATE of ConfigMap settings\n")
}

func TestWebhooksAreChosenByName(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	out := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "--only", poddefault.Name).wantOK(t)
	if !strings.Contains(out, "HTTP_PROXY") {
		t.Errorf("printed\n%s", out)
	}
	// Names are checked before any file is read.
	sallyport(t, "review", "-f", "not-there.yaml", "--only", "poddefaults").want(t, exitError, "",
		"sallyport: --only \"poddefaults\": choose poddefault.sallyport.io, excluded.poddefault.sallyport.io or author.poddefault.sallyport.io\n")
}

func TestFlagsThatAreWrongAreAllNamed(t *testing.T) {
	sallyport(t, "review", "--operation", "create", "-o", "xml", "--color", "blue", "-n", "", "--with", "-", "--with", "-").wantError(t,
		`--operation "create": choose CREATE, UPDATE or DELETE`,
		`--output "xml": choose diff, yaml, json, patch, review, junit, sarif or github`,
		`--color "blue": choose auto, always or never`,
		"-f is required", "--namespace must not be empty", "stdin can be read only once",
	)
	sallyportWith(t, otherYAML, "review", "-f", "-", "--with", "-").wantError(t, "stdin can be read only once")
}

func TestNamespaceIsThatOfObjectsThatNameNone(t *testing.T) {
	in := func(object, namespace string) string {
		return strings.Replace(object, "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
	}
	for name, tc := range map[string]struct {
		pod, podDefault string
		args            []string
		match           bool
		note            string
	}{
		"neither names one":                     {pod: matchingYAML, podDefault: podDefaultYAML, match: true},
		"neither names one, and the flag does":  {pod: matchingYAML, podDefault: podDefaultYAML, args: []string{"-n", "team-a"}, match: true},
		"both name the same":                    {pod: in(matchingYAML, "team-a"), podDefault: in(podDefaultYAML, "team-a"), match: true},
		"the pod names none and the flag helps": {pod: matchingYAML, podDefault: in(podDefaultYAML, "team-a"), args: []string{"-n", "team-a"}, match: true},
		"the PodDefault names none and the flag helps": {
			pod: in(matchingYAML, "team-a"), podDefault: podDefaultYAML, args: []string{"--namespace", "team-a"}, match: true,
		},
		"the pod names none": {
			pod: matchingYAML, podDefault: in(podDefaultYAML, "team-a"),
			note: "note: stdin:1: Pod matching is in the namespace default, but the PodDefaults are in team-a; --namespace is that of objects which name none\n",
		},
		"both name another": {
			pod: in(matchingYAML, "team-b"), podDefault: in(podDefaultYAML, "team-a"), args: []string{"-n", "team-a"},
			note: "note: stdin:1: Pod team-b/matching is in the namespace team-b, but the PodDefaults are in team-a; --namespace is that of objects which name none\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"review", "-f", "-", "--with", file(t, "with.yaml", tc.podDefault)}, tc.args...)
			got := sallyportWith(t, tc.pod, args...)
			if got.status != exitOK || got.stderr != tc.note {
				t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
			}
			if match := strings.Contains(got.stdout, "HTTP_PROXY"); match != tc.match {
				t.Errorf("printed\n%s", got.stdout)
			}
		})
	}
}

func TestSettingsOfTheWebhookCount(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	proxy := strings.Replace(matchingYAML, "name: main", "name: istio-proxy", 1)
	proxy = strings.Replace(proxy, "  containers:\n", "  containers:\n  - {name: linkerd-proxy, image: l}\n", 1) // a sole container is the application
	got := sallyportWith(t, proxy, "review", "-f", "-", "--with", with, "-o", "yaml")
	if got.status != exitOK || strings.Contains(got.stdout, "HTTP_PROXY") || !strings.Contains(got.stderr, "container linkerd-proxy gets nothing from it") {
		t.Errorf("a mesh proxy was changed, or nothing is said of it:\n%s%s", got.stdout, got.stderr)
	}
	out := sallyportWith(t, proxy, "review", "-f", "-", "--with", with, "-o", "yaml", "--config", configured(t, "webhooks: [{name: poddefault, settings: {meshContainers: []}}]\n")).wantOK(t)
	if !strings.Contains(out, "HTTP_PROXY") {
		t.Errorf("meshContainers has no effect:\n%s", out)
	}
}

func TestWarningsOfWebhooksNameTheObject(t *testing.T) {
	first := podDefaultYAML + "  serviceAccountName: one\n"
	second := strings.NewReplacer("name: proxy", "name: robot", "serviceAccountName: one", "serviceAccountName: two").Replace(first)
	got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", file(t, "with.yaml", first+"---\n"+second+"---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: two}}\n"), "-o", "patch")
	if got.status != exitOK || !strings.HasPrefix(got.stderr, "warning: Pod matching: ") || !strings.Contains(got.stderr, "PodDefault default/robot") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
}

func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	hostile := strings.Replace(conflictingYAML, "name: conflicting", `name: "con\e[2J\aflicting"`, 1)
	got := sallyportWith(t, hostile, "review", "-f", "-", "--with", file(t, "with.yaml", podDefaultYAML))
	if got.status != exitDenied || strings.ContainsAny(got.stderr, "\x1b\a") || !strings.Contains(got.stderr, `con\x1b[2J\aflicting`) {
		t.Errorf("status %d, stderr %q", got.status, got.stderr)
	}
	got = sallyportWith(t, strings.ReplaceAll(hostile, "HTTP_PROXY", "OTHER"), "review", "-f", "-")
	if strings.ContainsAny(got.stdout+got.stderr, "\x1b\a") {
		t.Errorf("printed %q %q", got.stdout, got.stderr)
	}
}

// TestCharactersThatJSONEscapesAsPairsArePrinted: YAML has no such pairs.
func TestCharactersThatJSONEscapesAsPairsArePrinted(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML)
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"proxy": "true"}, "annotations": {"mood": "\ud83d\ude00\u2028"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}`
	for _, output := range []string{"diff", "yaml"} {
		got := sallyportWith(t, pod, "review", "-f", "-", "--with", with, "-o", output)
		if got.status != exitOK || !strings.Contains(got.stdout, "HTTP_PROXY") || got.stderr != "" {
			t.Errorf("-o %s: status %d, stdout:\n%s\nstderr:\n%s", output, got.status, got.stdout, got.stderr)
		}
	}
}

// namesOf returns the names of the objects that were printed.
func namesOf(t *testing.T, printed string) []string {
	t.Helper()
	objects, _, err := manifest.Parse("stdout", []byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.Name)
	}
	return names
}

// applyPatch applies a JSON Patch to a YAML document, and returns JSON.
func applyPatch(t *testing.T, document string, patch []byte) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(patch) {
		t.Fatalf("no JSON: %s", patch)
	}
	decoded, err := jsonpatchv4.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	applied, err := decoded.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// wantJSON compares two JSON values, with all digits of their numbers.
func wantJSON(t *testing.T, want string, got []byte) {
	t.Helper()
	decode := func(text string) (value any) {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		return value
	}
	if diff := cmp.Diff(decode(want), decode(string(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
