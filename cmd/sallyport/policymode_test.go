// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/export"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
)

// TestPoliciesWebhookAndReviewAgree draws pods, and PodDefaults that can be exported. The
// webhook's handler, the policies as the API server evaluates them, and the command review must
// return the same pod, or all three must deny it.
//
// Rapid runs a hundred checks by default (flag -rapid.checks). Each check has podsEach pods.
func TestPoliciesWebhookAndReviewAgree(t *testing.T) {
	const podsEach = 3
	checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var cases, selected, injected, refused int
	kinds := map[string]int{} // by conflict
	rapid.Check(t, func(rt *rapid.T) {
		var pds []*kubeflowv1alpha1.PodDefault
		var exported *export.Exported
		for _, name := range []string{"pd-0", "pd-1", "pd-2", "pd-3"}[:rapid.IntRange(1, 4).Draw(rt, "PodDefaults")] {
			more := slices.Concat(pds, []*kubeflowv1alpha1.PodDefault{drawnPodDefault(rt, name)})
			e, err := export.Export(more, poddefault.DefaultSettings())
			if err != nil && len(pds) == 0 { // the PodDefault conflicts with itself
				more[0] = &kubeflowv1alpha1.PodDefault{TypeMeta: more[0].TypeMeta, ObjectMeta: more[0].ObjectMeta}
				more[0].Spec.Env = []corev1.EnvVar{drawnEnv(rt)}
				e, err = export.Export(more, poddefault.DefaultSettings())
			}
			if err == nil {
				pds, exported = more, e
			}
		}
		compiled, err := compilePolicies(exported, defaultPod)
		if err != nil {
			rt.Fatal(err)
		}
		w := newPolicyWorld(t, rt, folder, pds)
		var pods []*corev1.Pod
		for i := range podsEach {
			pod := drawnPod(rt, pds)
			pod.Name = fmt.Sprintf("p-%d", i)
			pods = append(pods, pod)
		}
		reviewed := w.review(pods)
		for _, pod := range pods {
			want := w.webhook(pod)
			if diff := cmp.Diff(want, reviewed[pod.Name]); diff != "" {
				rt.Fatalf("the webhook and review differ: %s", diff)
			}
			got, err := compiled.mutate(t.Context(), pod.DeepCopy())
			if err != nil {
				rt.Fatalf("the policy failed: %v", err)
			}
			message, err := compiled.refusal(t.Context(), got)
			if err != nil {
				rt.Fatal(err)
			}
			if (message != "") != (want == nil) {
				rt.Fatalf("the policy refuses %q, the webhook says %q\n%+v", message, w.message, want)
			}
			cases++
			if want == nil {
				refused++
				if !strings.HasPrefix(message, "conflict occurred while applying poddefaults: ") {
					rt.Fatalf("message: %q", message)
				}
				for _, conflict := range strings.Split(strings.SplitN(message, " err: ", 2)[1], "; ") {
					_, place, _ := strings.Cut(conflict, ": ")
					kinds[strings.TrimSuffix(strings.Fields(place)[0], ":")]++
				}
				continue
			}
			delete(want.Annotations, meta.RevisionsAnnotation) // which policies do not write
			if diff := cmp.Diff(plain(rt, want), plain(rt, got)); diff != "" {
				rt.Fatalf("(-webhook +policy):\n%s", diff)
			}
			if diff := cmp.Diff(plain(rt, pod), plain(rt, got)); diff != "" {
				injected++
			}
			if got.Annotations[meta.DecisionsAnnotation] != "" {
				selected++
			}
			again, err := compiled.mutate(t.Context(), got.DeepCopy())
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(plain(rt, got), plain(rt, again)); diff != "" {
				rt.Fatalf("a second round changes the pod:\n%s", diff)
			}
		}
	})
	t.Logf("%d cases: %d selected, %d injected, %d refused: %v", cases, selected, injected, refused, kinds)
	if cases < checks*podsEach*9/10 || injected < cases/10 || refused < cases/20 {
		t.Errorf("%d cases, of which %d were injected and %d refused: they prove little", cases, injected, refused)
	}
}

func TestPoliciesAreRefusedForEveryReasonAtOnce(t *testing.T) {
	const header = "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\n"
	for name, test := range map[string]struct {
		args  []string
		stdin string
		texts []string
	}{
		"no file":                          {nil, "", []string{"-f is required"}},
		"a file by its place":              {[]string{"testdata/poddefaults.yaml"}, "", []string{"with -f"}},
		"stdin twice":                      {[]string{"-f", "-", "-f", "-"}, "", []string{"- is named more than once"}},
		"no object":                        {[]string{"-f", "-"}, "apiVersion: v1\nkind: List\nitems: []\n", []string{"there is no PodDefault"}},
		"a name that is not a container's": {[]string{"-f", "testdata/poddefaults.yaml", "--config", configured(t, "webhooks: [{name: poddefault, settings: {meshContainers: [A b]}}]\n")}, "", []string{"meshContainers[0]"}},
		"several objects and fields": {[]string{"-f", "-"},
			header + "metadata: {name: a, namespace: team}\nspec: {selector: {}, priorityClassName: x, conflictPolicy: Skip, env: [{name: A, value: s3cret}]}\n---\n" +
				header + "metadata: {name: b, namespace: team}\nspec: {selector: {}, substitute: true, env: [{name: A, value: '2'}]}\n---\n" +
				"apiVersion: sallyport.io/v1alpha1\nkind: ClusterPodDefault\nmetadata: {name: c}\nspec: {selector: {}}\n---\n" +
				"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
			[]string{
				"team/a: spec.priorityClassName", "team/a: spec.conflictPolicy: Skip", "team/b: spec.substitute", "team/a and b: env A: they want different things",
				"ClusterPodDefault c: policies are written for PodDefaults alone", "Pod p of v1 is not a PodDefault",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			r := sallyportWith(t, test.stdin, append([]string{"export"}, test.args...)...)
			r.wantError(t, test.texts...)
			if strings.Contains(r.stderr, "s3cret") {
				t.Errorf("stderr has a value:\n%s", r.stderr)
			}
		})
	}
}

// policyWorld applies the same PodDefaults with the webhook and with review.
type policyWorld struct {
	t       *testing.T
	rapid   *rapid.T
	handler func(*corev1.Pod) (*admissionv1.AdmissionResponse, error)
	file    string
	message string // of the last denial
}

func newPolicyWorld(t *testing.T, rt *rapid.T, folder string, pds []*kubeflowv1alpha1.PodDefault) *policyWorld {
	w := &policyWorld{t: t, rapid: rt, file: filepath.Join(folder, "poddefaults.json")}
	index := source.NewIndex()
	var documents []string
	for _, pd := range pds {
		index.Set(plan.Compile(pd))
		documents = append(documents, string(encoded(rt, pd)))
	}
	if err := os.WriteFile(w.file, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		rt.Fatal(err)
	}
	webhook, err := poddefault.New(index, poddefault.DefaultSettings())
	if err != nil {
		rt.Fatal(err)
	}
	w.handler = func(pod *corev1.Pod) (*admissionv1.AdmissionResponse, error) {
		resp, err := webhook.Handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
			Resource: metav1.GroupVersionResource(podResource), Namespace: pod.Namespace, Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: encoded(rt, pod)},
		})
		if err != nil {
			return nil, err
		}
		out := &admissionv1.AdmissionResponse{Allowed: resp.Allowed}
		if len(resp.Patch) > 0 {
			out.Patch = resp.Patch.AppendJSON(nil)
		}
		if resp.Status != nil {
			out.Result = resp.Status
		}
		return out, nil
	}
	return w
}

// webhook returns the handler's result for the pod; nil if it is denied.
func (w *policyWorld) webhook(pod *corev1.Pod) *corev1.Pod {
	resp, err := w.handler(pod)
	if err != nil {
		w.rapid.Fatal(err)
	}
	if !resp.Allowed {
		w.message = resp.Result.Message
		return nil
	}
	raw := encoded(w.rapid, pod)
	if len(resp.Patch) > 0 {
		patch, err := jsonpatchv4.DecodePatch(resp.Patch)
		if err != nil {
			w.rapid.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			w.rapid.Fatal(err)
		}
	}
	return w.decoded(raw)
}

// review returns what the command makes of the pods, by name: none of those that it denies. One
// command reviews all: cobra keeps the flags of each for good, to complete them.
func (w *policyWorld) review(pods []*corev1.Pod) map[string]*corev1.Pod {
	var in bytes.Buffer
	for _, pod := range pods {
		in.Write(encoded(w.rapid, pod))
		in.WriteString("\n---\n")
	}
	r := sallyportWith(w.t, in.String(), "review", "-f", "-", "--with", w.file, "--only", poddefault.Name, "--allow-unknown", "-o", "json")
	if r.status != exitOK && r.status != exitDenied {
		w.rapid.Fatalf("review: status %d: %s", r.status, r.stderr)
	}
	reviewed := map[string]*corev1.Pod{}
	for all := json.NewDecoder(strings.NewReader(r.stdout)); all.More(); {
		var raw json.RawMessage
		if err := all.Decode(&raw); err != nil {
			w.rapid.Fatal(err)
		}
		pod := w.decoded(raw)
		reviewed[pod.Name] = pod
	}
	return reviewed
}

func (w *policyWorld) decoded(raw []byte) *corev1.Pod {
	pod, err := asPod(raw)
	if err != nil {
		w.rapid.Fatal(err)
	}
	return pod
}

func encoded(t *rapid.T, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// plain returns the JSON tree of a pod without empty values.
func plain(t *rapid.T, pod *corev1.Pod) (tree map[string]any) {
	if err := json.Unmarshal(encoded(t, pod), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}
