// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// newTestReconciler has read everything and has a stopped clock.
func newTestReconciler(t *testing.T) *reconciler {
	t.Helper()
	r := bareReconciler()
	t.Cleanup(r.writes.ShutDown)
	t.Cleanup(r.compares.ShutDown)
	return r
}

func bareReconciler() *reconciler {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err) // the registry is new
	}
	r := newReconciler(&Controller{log: slog.New(slog.DiscardHandler), overlap: compare.OfPlans, pace: defaultPace, metrics: m})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r.now = func() time.Time { return at }
	r.setNamespace("team-a", labels.Set{"team": "a"})
	r.setNamespace("team-b", labels.Set{"team": "b"})
	return r
}

// podDefault selects pods with the label and sets the variable.
func podDefault(namespace, name, label, value string) *plan.Plan {
	return plan.Compile(&kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1", Generation: 1},
		Spec:       envSpec(label, value),
	})
}

func envSpec(label, value string) kubeflowv1alpha1.PodDefaultSpec {
	return kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}},
		Env:      []corev1.EnvVar{{Name: "HTTP_PROXY", Value: value}},
	}
}

func clusterPodDefault(name, value string, namespaces *metav1.LabelSelector) *plan.Plan {
	return plan.CompileCluster(&sallyportv1alpha1.ClusterPodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", Generation: 1},
		Spec:       sallyportv1alpha1.ClusterPodDefaultSpec{PodDefaultSpec: envSpec("any", value), NamespaceSelector: namespaces},
	})
}

// compareNow compares all changed objects.
func (r *reconciler) compareNow() {
	for r.compareNext() {
	}
}

// pairs returns all pairs, "a with b", in order.
func (r *reconciler) pairs() []string {
	var out []string
	for _, n := range r.objects {
		for _, other := range n.others {
			out = append(out, n.String()+" with "+other.String())
		}
	}
	slices.Sort(out)
	return out
}

func TestWhoDisagreesWithWhom(t *testing.T) {
	teamA := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	both := func(a, b string) []string {
		out := []string{a + " with " + b, b + " with " + a}
		slices.Sort(out)
		return out
	}
	for name, tc := range map[string]struct {
		objects []*plan.Plan
		then    func(*reconciler)
		want    []string
	}{
		"two that want different values":              {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, nil, both("PodDefault team-a/x", "PodDefault team-a/y")},
		"two that want the same":                      {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "1")}, nil, nil},
		"two of different namespaces":                 {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), podDefault("team-b", "y", "p", "2")}, nil, nil},
		"one for the namespace and one for all":       {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), clusterPodDefault("all", "2", nil)}, nil, both("PodDefault team-a/x", "ClusterPodDefault all")},
		"one for the namespace and one for others":    {[]*plan.Plan{podDefault("team-b", "x", "p", "1"), clusterPodDefault("a-only", "2", teamA)}, nil, nil},
		"two for all namespaces":                      {[]*plan.Plan{clusterPodDefault("one", "1", nil), clusterPodDefault("two", "2", teamA)}, nil, both("ClusterPodDefault one", "ClusterPodDefault two")},
		"two for namespaces that nobody has":          {[]*plan.Plan{clusterPodDefault("one", "1", nil), clusterPodDefault("two", "2", &metav1.LabelSelector{MatchLabels: map[string]string{"team": "c"}})}, nil, nil},
		"one of them goes":                            {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, func(r *reconciler) { r.remove(key{Namespace: "team-a", Name: "y"}) }, nil},
		"one of them gives in":                        {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, func(r *reconciler) { r.set(podDefault("team-a", "y", "q", "1")) }, nil},
		"a namespace gets the label that is selected": {[]*plan.Plan{podDefault("team-b", "x", "p", "1"), clusterPodDefault("a-only", "2", teamA)}, func(r *reconciler) { r.setNamespace("team-b", labels.Set{"team": "a"}) }, both("PodDefault team-b/x", "ClusterPodDefault a-only")},
		"a namespace loses it":                        {[]*plan.Plan{podDefault("team-a", "x", "p", "1"), clusterPodDefault("a-only", "2", teamA)}, func(r *reconciler) { r.setNamespace("team-a", labels.Set{}) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestReconciler(t)
			for _, o := range tc.objects {
				r.set(o)
			}
			r.compareNow()
			if tc.then != nil {
				tc.then(r)
				r.compareNow()
			}
			if got := r.pairs(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			conflicting := map[string]bool{}
			for _, pair := range tc.want {
				conflicting[strings.Split(pair, " with ")[0]] = true
			}
			if got, want := testutil.ToFloat64(r.metrics.conflicting), float64(len(conflicting)); got != want {
				t.Errorf("the metric says %v, not %v", got, want)
			}
		})
	}
}

// conditionsOf returns the desired conditions of an object, by type.
func (r *reconciler) conditionsOf(t *testing.T, k key) map[string]metav1.Condition {
	t.Helper()
	r.compareNow()
	out := map[string]metav1.Condition{}
	for _, c := range r.desired(r.objects[k]) {
		out[c.Type] = c
	}
	return out
}

func TestConditionsSayWhatIsWrong(t *testing.T) {
	r := newTestReconciler(t)
	r.set(podDefault("team-a", "good", "p", "secret-1"))
	conditions := r.conditionsOf(t, key{Namespace: "team-a", Name: "good"})
	if c := conditions[kubeflowv1alpha1.ConditionAccepted]; c.Status != metav1.ConditionTrue || c.Reason != "Valid" || c.ObservedGeneration != 1 {
		t.Errorf("accepted: %+v", c)
	}
	if c := conditions[kubeflowv1alpha1.ConditionConflicting]; c.Status != metav1.ConditionFalse {
		t.Errorf("conflicting: %+v", c)
	}
	if c := conditions[kubeflowv1alpha1.ConditionUISelectable]; c.Status != metav1.ConditionTrue {
		t.Errorf("selectable: %+v", c)
	}
	for i := range 8 {
		r.set(podDefault("team-a", fmt.Sprintf("other-%d", i), "q", "secret-2"))
	}
	c := r.conditionsOf(t, key{Namespace: "team-a", Name: "good"})[kubeflowv1alpha1.ConditionConflicting]
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "PodDefaults good and other-0 both set env HTTP_PROXY; pods selected by both are denied. Change one selector, ") ||
		!strings.HasSuffix(c.Message, "; and 3 more") || strings.Contains(c.Message, "secret") {
		t.Errorf("conflicting: %+v", c)
	}
	bad := envSpec("p", "1")
	bad.Env = append(bad.Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "secret-3"}) // it fights with itself
	r.set(plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "bad", Generation: 2}, Spec: bad}))
	conditions = r.conditionsOf(t, key{Namespace: "team-a", Name: "bad"})
	if c := conditions[kubeflowv1alpha1.ConditionAccepted]; c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "spec.env[1].name") || strings.Contains(c.Message, "secret") {
		t.Errorf("accepted: %+v", c)
	}
	if c := conditions[kubeflowv1alpha1.ConditionConflicting]; c.Status != metav1.ConditionFalse {
		t.Errorf("what is left out conflicts: %+v", c)
	}
	r.set(clusterPodDefault("all", "secret-1", nil))
	if c := r.conditionsOf(t, key{Namespace: "", Name: "all"})[kubeflowv1alpha1.ConditionUISelectable]; c.Status != metav1.ConditionFalse || c.Reason != "ClusterScoped" {
		t.Errorf("selectable: %+v", c)
	}
}

func TestConflictingTellsWhatBecomesOfPods(t *testing.T) {
	r := newTestReconciler(t)
	r.set(podDefault("team-a", "a", "p", "1"))
	set := func(policy kubeflowv1alpha1.ConflictPolicy, group string) string {
		b := envSpec("q", "2")
		b.ConflictPolicy, b.ExclusiveGroup = policy, group
		r.set(plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "b", Generation: 2}, Spec: b}))
		c := r.conditionsOf(t, key{Namespace: "team-a", Name: "a"})[kubeflowv1alpha1.ConditionConflicting]
		return string(c.Status) + c.Message
	}
	set("", "")
	now := r.now().Add(r.pace.longest)
	r.now = func() time.Time { return now }
	r.objects[key{Namespace: "team-a", Name: "a"}].turn.since = time.Time{} // it was written
	if got := set(kubeflowv1alpha1.ConflictSkip, ""); !strings.Contains(got, "conflictPolicy Skip of b") {
		t.Error(got)
	}
	if r.objects[key{Namespace: "team-a", Name: "a"}].turn.since.IsZero() {
		t.Error("the other policy is no reason to write the status of the other object")
	}
	a := envSpec("p", "1")
	a.ExclusiveGroup = "proxies"
	r.set(plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a", Generation: 2}, Spec: a}))
	if got := set("", "proxies"); !strings.HasPrefix(got, "False") {
		t.Error("alternatives are reported:", got)
	}
}

func TestAStatusThatIsRightIsNotWritten(t *testing.T) {
	r := newTestReconciler(t)
	k := key{Namespace: "team-a", Name: "x"}
	r.set(podDefault("team-a", "x", "p", "1"))
	r.compareNow()
	o, next, _ := r.next(k)
	if o == nil || len(next.Conditions) != 4 || next.ObservedGeneration != 1 {
		t.Fatalf("nothing is written: %+v", next)
	}
	r.written(o, next, "2", nil)
	// The watch delivers the write.
	read := func(version string, status kubeflowv1alpha1.PodDefaultStatus) *plan.Plan {
		return plan.Compile(&kubeflowv1alpha1.PodDefault{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", UID: "1", Generation: 1, ResourceVersion: version},
			Spec:       envSpec("p", "1"), Status: status,
		})
	}
	r.set(read("2", *next))
	r.compareNow()
	if !r.objects[k].turn.since.IsZero() {
		t.Error("its own write makes the controller write again")
	}
	// Another client removes a condition.
	spoiled := next.DeepCopy()
	meta.RemoveStatusCondition(&spoiled.Conditions, kubeflowv1alpha1.ConditionAccepted)
	r.set(read("3", *spoiled))
	if r.objects[k].turn.since.IsZero() {
		t.Error("a status that somebody else has changed stays as it is")
	}
}

func TestWritesForOneGenerationComeEverMoreSeldom(t *testing.T) {
	r := newTestReconciler(t)
	at := r.now()
	r.now = func() time.Time { return at }
	p := &turn{since: at, generation: 1}
	for writes, want := range []time.Duration{0, 15 * time.Second, time.Minute, 4 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		p.writes, p.last = writes, at
		if got := r.due(p, 1); got != want {
			t.Errorf("after %d writes it waits %s, want %s", writes, got, want)
		}
	}
	if got := r.due(p, 2); got != 0 {
		t.Errorf("a new generation waits %s", got)
	}
	p.writes, p.last = 5, at.Add(-time.Hour)
	if got := r.due(p, 2); got != 0 {
		t.Errorf("after a long time it waits %s", got)
	}
	r.changed[key{Namespace: "team-a", Name: "x"}] = struct{}{}
	if got := r.due(p, 2); got != defaultPace.quiet {
		t.Errorf("while others change it waits %s", got)
	}
	p.since = at.Add(-time.Minute)
	if got := r.due(p, 2); got != 0 {
		t.Errorf("it waits for ever: %s", got)
	}
}

func TestACrowdIsKeptInBounds(t *testing.T) {
	r := newTestReconciler(t)
	const many = maxKept + 10
	for i := range many {
		r.set(podDefault("team-a", fmt.Sprintf("object-%03d", i), fmt.Sprintf("label-%d", i), fmt.Sprint(i)))
	}
	r.compareNow()
	for k, n := range r.objects {
		if len(n.others) > maxKept || !n.more {
			t.Fatalf("%s keeps %d others", k, len(n.others))
		}
	}
	if c := r.conditionsOf(t, key{Namespace: "team-a", Name: "object-000"})[kubeflowv1alpha1.ConditionConflicting]; !strings.HasSuffix(c.Message, fmt.Sprintf("; and %d more at least", maxKept-namedOthers)) {
		t.Errorf("message: %s", c.Message)
	}
	// All but three are deleted one after the other. The three still list each other,
	// and nothing else.
	for i := range many - 3 {
		r.remove(key{Namespace: "team-a", Name: fmt.Sprintf("object-%03d", i)})
		r.compareNow()
	}
	var want []string
	for i := many - 3; i < many; i++ {
		for j := many - 3; j < many; j++ {
			if i != j {
				want = append(want, fmt.Sprintf("PodDefault team-a/object-%03d with PodDefault team-a/object-%03d", i, j))
			}
		}
	}
	if got := r.pairs(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for k, n := range r.objects {
		if n.more {
			t.Errorf("%s thinks that there are more", k)
		}
	}
}

// TestWhoIsKeptFollowsFromWhatIsThere compares statuses after many changes with those
// of a controller that starts with the result.
func TestWhoIsKeptFollowsFromWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := bareReconciler()
		defer r.writes.ShutDown()
		there := map[key]*plan.Plan{}
		for range rapid.IntRange(1, 150).Draw(t, "changes") {
			name := fmt.Sprintf("object-%02d", rapid.IntRange(0, 90).Draw(t, "name"))
			k := key{Namespace: rapid.SampledFrom([]string{"team-a", "team-b", ""}).Draw(t, "namespace"), Name: name}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				delete(there, k)
				r.remove(k)
			case 1:
				r.compareNow()
			case 2:
				r.setNamespace("team-b", labels.Set{"team": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "team")})
			default:
				label, value := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "label"), fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value"))
				o := podDefault(k.Namespace, k.Name, label, value)
				if k.Namespace == "" {
					o = clusterPodDefault(k.Name, value, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}})
				}
				there[k] = o
				r.set(o)
			}
		}
		r.compareNow()
		fresh := bareReconciler()
		defer fresh.writes.ShutDown()
		fresh.setNamespace("team-b", r.namespaces["team-b"])
		for _, o := range there {
			fresh.set(o)
		}
		fresh.compareNow()
		for k := range there {
			if got, want := conflicting(r.objects[k]), conflicting(fresh.objects[k]); got != want {
				t.Fatalf("%s: %+v, anew %+v", k, got, want)
			}
		}
		if r.conflicting != fresh.conflicting || len(r.claimed) != len(fresh.claimed) {
			t.Fatalf("%d conflicts at %d places, anew %d at %d", r.conflicting, len(r.claimed), fresh.conflicting, len(fresh.claimed))
		}
	})
}

// TestConflictsTakeLittleMemory lets every object conflict with every other one in
// three places. Memory grows with the number of objects, not of pairs.
func TestConflictsTakeLittleMemory(t *testing.T) {
	const most = 8 << 10 // bytes an object
	for _, many := range []int{1_000, 2_000 * *times} {
		r := bareReconciler()
		r.overlap = func(_, b *plan.Plan) []string { // what it takes to find out is not kept
			return []string{"env HTTPS_PROXY of " + b.Name(), "env HTTP_PROXY of " + b.Name(), "env NO_PROXY of " + b.Name()}
		}
		objects := make([]*plan.Plan, many)
		for i := range objects {
			spec := envSpec(fmt.Sprintf("label-%d", i), fmt.Sprint(i))
			for _, name := range []string{"HTTPS_PROXY", "NO_PROXY"} {
				spec.Env = append(spec.Env, corev1.EnvVar{Name: name, Value: fmt.Sprint(i)})
			}
			objects[i] = plan.Compile(&kubeflowv1alpha1.PodDefault{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("object-%05d", i), UID: "1", Generation: 1}, Spec: spec,
			})
		}
		before := heap()
		peak := before
		for i, o := range objects {
			r.set(o)
			if i%1_000 == 0 {
				r.compareNow()
				peak = max(peak, heap())
			}
		}
		r.compareNow()
		peak = max(peak, heap())
		t.Logf("%d objects: %d KiB", many, (peak-before)>>10)
		if peak-before > uint64(many)*most {
			t.Errorf("%d objects that conflict take %d MiB", many, (peak-before)>>20)
		}
		if r.conflicting != many {
			t.Errorf("%d of %d conflict", r.conflicting, many)
		}
		r.writes.ShutDown()
		runtime.KeepAlive(objects)
	}
}

// heap returns the heap in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestComparisonsAreBounded(t *testing.T) {
	r := newTestReconciler(t)
	compared := 0
	r.overlap = func(_, _ *plan.Plan) []string { compared++; return nil }
	const many = maxCompared + 100
	for i := range many {
		r.set(podDefault("team-a", fmt.Sprint(i), fmt.Sprintf("label-%d", i), fmt.Sprint(i)))
	}
	r.compareNow()
	if compared > many*maxCompared {
		t.Errorf("%d comparisons of %d objects", compared, many)
	}
	if c := r.conditionsOf(t, key{Namespace: "team-a", Name: "0"})[kubeflowv1alpha1.ConditionConflicting]; c.Status != metav1.ConditionUnknown || c.Message == "" {
		t.Errorf("of what was not looked at it says %+v", c)
	}
}

func TestClaimsFollowFromTheFieldsThatAreSet(t *testing.T) {
	spec := &kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "true"}}, Desc: "x",
		Env:                []corev1.EnvVar{{Name: "A", Value: "1"}},
		Labels:             map[string]string{"l": "1"},
		Sidecars:           []corev1.Container{{Name: "c"}},
		InitContainers:     []corev1.Container{{Name: "c"}, {Name: "d"}},
		VolumeMounts:       []corev1.VolumeMount{{Name: "v", MountPath: "/m"}},
		ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "s"}},
		Command:            []string{"sh"},
		ServiceAccountName: "robot",
	}
	want := []string{"command/", "containers/c", "containers/d", "env/A", "imagePullSecrets/s", "labels/l", "serviceAccountName", "volumeMounts//m"}
	var got []string
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims(raw) {
		got = append(got, c.place)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAMessageThatIsCutFitsIntoAnEvent checks that a message respects the API server's
// limit for events, and ends at a character boundary.
func TestAMessageThatIsCutFitsIntoAnEvent(t *testing.T) {
	const most = 1024 // pkg/apis/core/validation in Kubernetes: NoteLengthLimit
	for _, text := range []string{"a", "é", "…", "𝛼"} {
		for n := most - 8; n <= most+8; n++ {
			whole := strings.Repeat("x", n%4) + strings.Repeat(text, n/len(text))
			message := control.Cut(whole)
			switch {
			case len(message) > most:
				t.Errorf("%d bytes of %q are cut to %d", len(whole), text, len(message))
			case !utf8.ValidString(message):
				t.Errorf("%d bytes of %q are cut within a character: %q", len(whole), text, message[most-8:])
			case len(whole) <= most && message != whole:
				t.Errorf("%d bytes of %q are cut", len(whole), text)
			}
		}
	}
}
