// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	_ "pgregory.net/rapid" // its flag says how many cases are drawn

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyport "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

const namespace = "team-a"

// world is all that a decision depends on, apart from the pod.
type world struct {
	PodDefaults        []kubeflow.PodDefault
	ClusterPodDefaults []sallyport.ClusterPodDefault
}

var (
	namespaceLabels = map[string]string{"kubernetes.io/metadata.name": namespace, "team": "a"}
	secrets         = []metav1.ObjectMeta{
		{Name: "s2", Labels: map[string]string{"kind": "env"}}, {Name: "s1", Labels: map[string]string{"kind": "env"}},
		{Name: "f1", Labels: map[string]string{"kind": "files"}}, {Name: "other"}}
)

// request is what the specification knows about a pod.
func (w world) request(pod *corev1.Pod) Request {
	for i := range w.PodDefaults {
		w.PodDefaults[i].Status.CurrentRevision = plan.Compile(&w.PodDefaults[i]).Revision()
	}
	for i := range w.ClusterPodDefaults {
		w.ClusterPodDefaults[i].Status.CurrentRevision = plan.CompileCluster(&w.ClusterPodDefaults[i]).Revision()
	}
	return Request{
		Pod: pod, Namespace: namespace, NamespaceLabels: namespaceLabels, PodDefaults: w.PodDefaults, ClusterPodDefaults: w.ClusterPodDefaults,
		Secrets: secrets, DataConnections: labels.Everything(),
		MeshContainers: poddefault.DefaultSettings().MeshContainers, ExcludedContainers: poddefault.DefaultSettings().CommandExcluded,
	}
}

// server returns what the server makes of it: a pod, or the message of a denial.
func server(t *testing.T, w world, pod *corev1.Pod) (stored *corev1.Pod, message, warnings string) {
	index := source.NewIndex()
	index.SetNamespace(namespace, namespaceLabels)
	for _, s := range secrets {
		index.SetSecret(namespace, s.Name, s.Labels)
	}
	for i := range w.PodDefaults {
		index.Set(plan.Compile(&w.PodDefaults[i]))
	}
	for i := range w.ClusterPodDefaults {
		index.Set(plan.CompileCluster(&w.ClusterPodDefaults[i]))
	}
	define := poddefault.New
	if pod.Annotations[meta.ExcludeAnnotation] == "true" {
		define = poddefault.NewExcluded
	}
	webhook, err := define(index, poddefault.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Allowed {
		return nil, resp.Status.Message, strings.Join(resp.Warnings, "\n")
	}
	if len(resp.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(resp.Patch.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatal(err)
		}
	}
	stored = &corev1.Pod{}
	if err := json.Unmarshal(raw, stored); err != nil {
		t.Fatal(err)
	}
	return stored, "", strings.Join(resp.Warnings, "\n")
}

// draw draws objects, without those that authors could not write.
func draw(d draws, version int) (w world) {
	for i := range d.below(4) {
		if p := d.podDefault(fmt.Sprintf("pd-%d", i), version); accepted(&p.Spec) {
			w.PodDefaults = append(w.PodDefaults, p)
		}
	}
	for i := range d.below(3) {
		if c := d.clusterPodDefault(fmt.Sprintf("pd-%d", i), version); accepted(&c.Spec.PodDefaultSpec) {
			w.ClusterPodDefaults = append(w.ClusterPodDefaults, c)
		}
	}
	return w
}

// later draws changes of the objects: some have another spec, and some are gone.
func (d draws) later(w world) (later world) {
	next := draw(d, 2)
	for _, p := range w.PodDefaults {
		i := slices.IndexFunc(next.PodDefaults, func(n kubeflow.PodDefault) bool { return n.Name == p.Name })
		switch n := d.below(6); {
		case n == 0:
		case n < 3 && i >= 0:
			next.PodDefaults[i].Spec.Selector = p.Spec.Selector
			later.PodDefaults = append(later.PodDefaults, next.PodDefaults[i])
		default:
			later.PodDefaults = append(later.PodDefaults, p)
		}
	}
	for _, c := range w.ClusterPodDefaults {
		i := slices.IndexFunc(next.ClusterPodDefaults, func(n sallyport.ClusterPodDefault) bool { return n.Name == c.Name })
		switch n := d.below(6); {
		case n == 0:
		case n < 3 && i >= 0:
			next.ClusterPodDefaults[i].Spec.Selector = c.Spec.Selector
			later.ClusterPodDefaults = append(later.ClusterPodDefaults, next.ClusterPodDefaults[i])
		default:
			later.ClusterPodDefaults = append(later.ClusterPodDefaults, c)
		}
	}
	return later
}

func accepted(spec *kubeflow.PodDefaultSpec) bool {
	errs, _ := validate.Spec(spec, nil)
	return len(errs) == 0
}

// sentWith writes managedFields, as the API server does before it calls webhooks, for all that the pod has.
func sentWith(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	owned := map[string]map[string]struct{}{"f:labels": {}, "f:annotations": {}}
	for key := range pod.Labels {
		owned["f:labels"]["f:"+key] = struct{}{}
	}
	for key := range pod.Annotations {
		owned["f:annotations"]["f:"+key] = struct{}{}
	}
	raw, err := json.Marshal(map[string]any{"f:metadata": owned})
	if err != nil {
		panic(err)
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}}
	return pod
}

var (
	seed            = flag.Uint64("seed", 1, "draws other cases")
	listDifferences = flag.Bool("differences", false, "do not stop at the first difference, but list all by what differs")
)

// tally is what a run has seen.
type tally struct {
	cases, denied int
	applied       map[string]int // fields and policies of objects that were applied
	met           map[string]int // policies, and what they led to
	other         map[string]int // differences
}

// difference names a disagreement; empty if there is none.
func difference(c compared) (cause, detail string) {
	outcome, stored, message := c.outcome, c.stored, c.message
	switch denied := len(outcome.Denied) > 0; {
	case denied && stored == nil:
		if o := notListed(outcome.Denied, message); o != "" {
			return "the server denies without a word about an object", o + " " + fmt.Sprint(outcome.Denied) + message
		}
		return "", ""
	case denied:
		return "only the specification denies: " + kind(outcome.Denied[0].Element), fmt.Sprint(outcome.Denied)
	case stored == nil:
		return "only the server denies: " + shape(message), message
	}
	want, got := normal(defaulted(outcome.Pod)), normal(defaulted(stored))
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
	if diff == "" {
		if o := unnamed(outcome.Warnings, c.warned); o != "" {
			return "the server warns without a word about an object", o + " " + fmt.Sprint(outcome.Warnings) + c.warned
		}
		return "", ""
	}
	paths, detail := differing(want, got)
	return "pods differ: " + strings.Join(paths, " "), detail + fmt.Sprint(outcome.Warnings)
}

// notListed returns an object that findings name, and the message of a denial does not list.
func notListed(findings []Finding, message string) string {
	_, list, _ := strings.Cut(message, "applying poddefaults: ")
	list, _, _ = strings.Cut(list, " on pod")
	for _, f := range findings {
		if !slices.Contains(strings.Split(list, ","), f.Object) {
			return f.Object
		}
	}
	return ""
}

// unnamed returns an object that findings name, and a message does not.
func unnamed(findings []Finding, message string) string {
	for _, f := range findings {
		name := "PodDefault " + namespace + "/" + f.Object
		if cluster, ok := strings.CutPrefix(f.Object, "cluster/"); ok {
			name = "ClusterPodDefault " + cluster
		}
		if !strings.Contains(message, name) {
			return name
		}
	}
	return ""
}

func kind(element string) string {
	words := strings.Fields(element)
	return strings.Join(words[:min(len(words), 1)], " ")
}

var numbers = regexp.MustCompile(`\b(pd-\d|[ab]|[ABC]|[0-9]+)\b`)

func shape(message string) string {
	_, message, _ = strings.Cut(message, " err: ")
	return numbers.ReplaceAllString(message[:min(len(message), 150)], "_")
}

// differing names the fields of two pods that differ.
func differing(a, b *corev1.Pod) (paths []string, detail string) {
	var result []string
	var x, y map[string]any
	for pod, into := range map[*corev1.Pod]*map[string]any{a: &x, b: &y} {
		raw, _ := json.Marshal(pod)
		_ = json.Unmarshal(raw, into)
	}
	var walk func(path string, x, y any)
	walk = func(path string, x, y any) {
		mx, xok := x.(map[string]any)
		my, yok := y.(map[string]any)
		if xok && yok {
			for key := range mx {
				walk(path+"."+key, mx[key], my[key])
			}
			for key := range my {
				if _, both := mx[key]; !both {
					walk(path+"."+key, nil, my[key])
				}
			}
			return
		}
		lx, xok := x.([]any)
		ly, yok := y.([]any)
		if xok && yok && len(lx) == len(ly) {
			for i := range lx {
				walk(path, lx[i], ly[i])
			}
			return
		}
		if !cmp.Equal(x, y) && !slices.Contains(result, path) {
			result = append(result, numbers.ReplaceAllString(path, "_"))
			is, want := text(y), text(x)
			detail += fmt.Sprintf("%s\n    specified %s\n    served    %s\n", path, want, is)
		}
	}
	walk("", x, y)
	slices.Sort(result)
	return slices.Compact(result), detail
}

// normal leaves out what the specification does not say.
func normal(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ManagedFields = nil
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			emptyIsNone(&list[i].SecurityContext)
		}
	}
	emptyIsNone(&pod.Spec.SecurityContext)
	for i := range pod.Spec.Tolerations {
		setIfZero(&pod.Spec.Tolerations[i].Operator, corev1.TolerationOpEqual)
	}
	emptyIsNone(&pod.Spec.Affinity)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		slices.SortFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(a, b corev1.NodeSelectorTerm) int {
			return strings.Compare(text(a), text(b)) // alternatives
		})
	}
	for key, value := range pod.Annotations {
		if strings.Contains(key, "skipped-") {
			pod.Annotations[key], _, _ = strings.Cut(value, ":")
		}
	}
	return pod
}

// TestServerDoesWhatIsSpecified compares the server with the specification: for pods as users send them, for what the API server
// sends if it calls again, and for pods that are sent again after their objects have changed. The flag -rapid.checks, which `make
// properties` sets, is the number of cases, and from 10,000 on a tenth of it; -seed draws others, and -differences lists all differences.
func TestServerDoesWhatIsSpecified(t *testing.T) {
	cases, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	if cases >= 10000 { // at night
		cases *= 10
	}
	tally := &tally{applied: map[string]int{}, met: map[string]int{}, other: map[string]int{}}
	for n := range cases {
		tally.try(t, newDraws(*seed, uint64(n)))
	}
	t.Logf("seed %d: %d cases, %d denied\napplied %v\nmet %v", *seed, tally.cases, tally.denied, tally.applied, tally.met)
	if len(tally.other) > 0 {
		t.Errorf("differences: %v", tally.other)
	}
	// The rest says whether the cases prove anything, and needs many of them.
	if cases >= 500 {
		tally.checkCoverage(t, max(1, cases/500))
	}
}

// try compares one random pod three times.
func (y *tally) try(t *testing.T, d draws) {
	w, pod := draw(d, 1), sentWith(d.pod())
	if len(violations(pod)) > 0 {
		return // the API server would not take it
	}
	y.cases++
	c := y.compare(t, "sent", w, pod)
	y.count(c)
	if c.stored == nil || len(c.outcome.Denied) > 0 {
		return
	}
	again := Apply(c.request(defaulted(c.outcome.Pod)))
	if diff := cmp.Diff(normal(defaulted(c.outcome.Pod)), normal(defaulted(again.Pod)), cmpopts.EquateEmpty()); diff != "" || len(again.Denied) > 0 {
		t.Errorf("the specification changes its own result: %v %s\n%s", again.Denied, diff, printed(w, pod))
	}
	after := defaulted(c.stored)
	y.compare(t, "called again", w, after)
	if w = d.later(w); d.oneIn(4) {
		after.Spec.Containers[0].Env = some(d, d.variable, func(v corev1.EnvVar) string { return v.Name })
	}
	y.compare(t, "sent again", w, sentWith(defaulted(after)))
}

// count records which fields and policies were tried.
func (y *tally) count(c compared) {
	if len(c.outcome.Denied) > 0 {
		y.denied++
	}
	policies := map[string]string{}
	for _, o := range c.request(c.pod).inOrder() {
		policy := string(o.ConflictPolicy)
		if policy == "" {
			policy = "none"
		}
		policies[o.String()] = policy
		if _, marked := c.outcome.Pod.Annotations[o.mark()]; !marked || len(c.outcome.Denied) > 0 {
			continue
		}
		y.applied["policy "+policy]++
		spec := reflect.ValueOf(o.PodDefaultSpec)
		for i := range spec.NumField() {
			if !spec.Field(i).IsZero() {
				y.applied[spec.Type().Field(i).Name]++
			}
		}
	}
	for _, f := range slices.Concat(c.outcome.Denied, c.outcome.Warnings) {
		if f.Element == "Mode" {
			y.met["Audit"]++
		} else {
			y.met[policies[f.Object]+" "+f.What]++
		}
	}
}

// checkCoverage fails if a field was not applied, or a policy had nothing to decide, so often.
func (y *tally) checkCoverage(t *testing.T, times int) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[kubeflow.PodDefaultSpec]()) {
		// Selector is in all; Rollout is left out; objects in mode Audit are not applied.
		if !slices.Contains([]string{"Selector", "Rollout", "Mode"}, field.Name) && y.applied[field.Name] < times {
			t.Errorf("%s was applied in %d cases", field.Name, y.applied[field.Name])
		}
	}
	decisions := []string{"none conflict", "Deny conflict", "KeepPod kept", "Override replaced", "Skip skipped", "Audit"}
	if times > 10 { // rarer
		decisions = append(decisions, "Override kept", "none kept", "none replaced", "none rule", "KeepPod skipped", "none cannot work")
	}
	for _, what := range decisions {
		if y.met[what] < max(1, times/2) {
			t.Errorf("policy and decision %q: %d cases", what, y.met[what])
		}
	}
}

// compared is a case with what the specification and the server make of it.
type compared struct {
	world
	t               *testing.T
	pod             *corev1.Pod
	outcome         Outcome
	stored          *corev1.Pod // nil if the server denied the pod with the message
	message, warned string
}

func both(t *testing.T, w world, pod *corev1.Pod) compared {
	stored, message, warnings := server(t, w, pod)
	return compared{w, t, pod, Apply(w.request(pod)), stored, message, warnings}
}

func (y *tally) compare(t *testing.T, what string, w world, pod *corev1.Pod) compared {
	c := both(t, w, pod)
	cause, _ := difference(c)
	if cause == "" {
		return c
	}
	cause = what + ": " + cause
	if y.other[cause]++; y.other[cause] > 1 {
		return c
	}
	report := t.Fatal
	if *listDifferences {
		report = t.Log
	}
	report(cause, "\n", shrunk(t, w, pod))
	return c
}

// shrunk describes a smaller case with a difference.
func shrunk(t *testing.T, w world, pod *corev1.Pod) string {
	differs := func(w world, pod *corev1.Pod) (cause, detail string) {
		return difference(both(t, w, pod))
	}
	original, _ := differs(w, pod)
	smaller := func(w world, pod *corev1.Pod) bool {
		cause, _ := differs(w, pod)
		return cause == original
	}
	for again := true; again; {
		again = false
		for i := range w.PodDefaults {
			if v := (world{slices.Delete(slices.Clone(w.PodDefaults), i, i+1), w.ClusterPodDefaults}); smaller(v, pod) {
				w, again = v, true
				break
			}
		}
		for i := range w.ClusterPodDefaults {
			if v := (world{w.PodDefaults, slices.Delete(slices.Clone(w.ClusterPodDefaults), i, i+1)}); smaller(v, pod) {
				w, again = v, true
				break
			}
		}
	}
	for i := range w.PodDefaults {
		zeroed(&w.PodDefaults[i].Spec, func() bool { return accepted(&w.PodDefaults[i].Spec) && smaller(w, pod) })
	}
	for i := range w.ClusterPodDefaults {
		zeroed(&w.ClusterPodDefaults[i].Spec.PodDefaultSpec, func() bool { return accepted(&w.ClusterPodDefaults[i].Spec.PodDefaultSpec) && smaller(w, pod) })
	}
	zeroed(&pod.Spec, func() bool { return smaller(w, pod) })
	for i := range pod.Spec.Containers {
		zeroed(&pod.Spec.Containers[i], func() bool { return smaller(w, pod) })
	}
	_, detail := differs(w, pod)
	return detail + "\n" + printed(w, pod)
}

// zeroed takes fields away from a struct as long as something still holds.
func zeroed(of any, holds func() bool) {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			old := reflect.ValueOf(field.Interface())
			if field.SetZero(); !holds() {
				field.Set(old)
			}
		}
	}
}

func printed(w world, pod *corev1.Pod) string {
	lines := "pod: " + text(pod.Labels) + text(pod.Annotations) + " " + text(pod.Spec)
	for _, c := range w.ClusterPodDefaults {
		lines += "\n" + "cluster/" + c.Name + ": " + text(c.Spec)
	}
	for _, p := range w.PodDefaults {
		lines += "\n" + p.Name + ": " + text(p.Spec)
	}
	return regexp.MustCompile(`,?"(terminationMessagePath|imagePullPolicy)":"[^"]*"|,?"resources":\{\}`).ReplaceAllString(lines, "")
}

func emptyIsNone[T any](field **T) {
	if *field != nil && reflect.ValueOf(**field).IsZero() {
		*field = nil
	}
}
