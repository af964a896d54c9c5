// SPDX-License-Identifier: Apache-2.0

package status

import (
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
)

// newTestEpoch has read everything, and its clock stands still.
func newTestEpoch(t *testing.T) *epoch {
	t.Helper()
	e := bareEpoch()
	t.Cleanup(e.queue.ShutDown)
	return e
}

func bareEpoch() *epoch {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err) // the registry is new
	}
	e := newEpoch(&Controller{log: slog.New(slog.DiscardHandler), rules: webhookRules(), pace: defaultPace, metrics: m})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e.now = func() time.Time { return at }
	clear(e.loading)
	e.setNamespace("team-a", labels.Set{"team": "a"})
	e.setNamespace("team-b", labels.Set{"team": "b"})
	return e
}

// podDefault selects pods with the label and sets the variable.
func podDefault(namespace, name, label, value string) *object {
	return fromPodDefault(&kubeflowv1alpha1.PodDefault{
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

func clusterPodDefault(name, value string, namespaces *metav1.LabelSelector) *object {
	return fromClusterPodDefault(&sallyportv1alpha1.ClusterPodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", Generation: 1},
		Spec:       sallyportv1alpha1.ClusterPodDefaultSpec{PodDefaultSpec: envSpec("any", value), NamespaceSelector: namespaces},
	})
}

// compareNow compares all that has changed.
func (e *epoch) compareNow() {
	for e.compareNext() {
	}
}

// pairs are all pairs, "a with b", in order.
func (e *epoch) pairs() []string {
	var out []string
	for k, n := range e.objects {
		for _, other := range n.others {
			out = append(out, k.String()+" with "+other.String())
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
		objects []*object
		then    func(*epoch)
		want    []string
	}{
		"two that want different values":              {[]*object{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, nil, both("PodDefault team-a/x", "PodDefault team-a/y")},
		"two that want the same":                      {[]*object{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "1")}, nil, nil},
		"two of different namespaces":                 {[]*object{podDefault("team-a", "x", "p", "1"), podDefault("team-b", "y", "p", "2")}, nil, nil},
		"one for the namespace and one for all":       {[]*object{podDefault("team-a", "x", "p", "1"), clusterPodDefault("all", "2", nil)}, nil, both("PodDefault team-a/x", "ClusterPodDefault all")},
		"one for the namespace and one for others":    {[]*object{podDefault("team-b", "x", "p", "1"), clusterPodDefault("a-only", "2", teamA)}, nil, nil},
		"two for all namespaces":                      {[]*object{clusterPodDefault("one", "1", nil), clusterPodDefault("two", "2", teamA)}, nil, both("ClusterPodDefault one", "ClusterPodDefault two")},
		"two for namespaces that nobody has":          {[]*object{clusterPodDefault("one", "1", nil), clusterPodDefault("two", "2", &metav1.LabelSelector{MatchLabels: map[string]string{"team": "c"}})}, nil, nil},
		"one of them goes":                            {[]*object{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, func(e *epoch) { e.remove(key{"team-a", "y"}) }, nil},
		"one of them gives in":                        {[]*object{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, func(e *epoch) { e.set(podDefault("team-a", "y", "q", "1")) }, nil},
		"a namespace gets the label that is selected": {[]*object{podDefault("team-b", "x", "p", "1"), clusterPodDefault("a-only", "2", teamA)}, func(e *epoch) { e.setNamespace("team-b", labels.Set{"team": "a"}) }, both("PodDefault team-b/x", "ClusterPodDefault a-only")},
		"a namespace loses it":                        {[]*object{podDefault("team-a", "x", "p", "1"), clusterPodDefault("a-only", "2", teamA)}, func(e *epoch) { e.setNamespace("team-a", labels.Set{}) }, nil},
		"all are read anew, and one is not there":     {[]*object{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")}, func(e *epoch) { e.replace([]*object{podDefault("team-a", "x", "p", "1")}, false) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTestEpoch(t)
			for _, o := range tc.objects {
				e.set(o)
			}
			e.compareNow()
			if tc.then != nil {
				tc.then(e)
				e.compareNow()
			}
			if got := e.pairs(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			conflicting := map[string]bool{}
			for _, pair := range tc.want {
				conflicting[strings.Split(pair, " with ")[0]] = true
			}
			if got, want := testutil.ToFloat64(e.metrics.conflicting), float64(len(conflicting)); got != want {
				t.Errorf("the metric says %v, not %v", got, want)
			}
		})
	}
}

// conditionsOf are what an object is to get, by type.
func (e *epoch) conditionsOf(t *testing.T, k key) map[string]metav1.Condition {
	t.Helper()
	e.compareNow()
	out := map[string]metav1.Condition{}
	for _, c := range e.desired(e.objects[k]) {
		out[c.Type] = c
	}
	return out
}

func TestConditionsSayWhatIsWrong(t *testing.T) {
	e := newTestEpoch(t)
	e.set(podDefault("team-a", "good", "p", "secret-1"))
	conditions := e.conditionsOf(t, key{"team-a", "good"})
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
		e.set(podDefault("team-a", fmt.Sprintf("other-%d", i), "q", "secret-2"))
	}
	c := e.conditionsOf(t, key{"team-a", "good"})[kubeflowv1alpha1.ConditionConflicting]
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "PodDefaults good and other-0 both set env HTTP_PROXY; pods selected by both are denied. Change one selector, ") ||
		!strings.HasSuffix(c.Message, "; and 3 more") || strings.Contains(c.Message, "secret") {
		t.Errorf("conflicting: %+v", c)
	}
	bad := podDefault("team-a", "bad", "p", "1")
	bad.spec.Env = append(bad.spec.Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "secret-3"}) // it fights with itself
	e.set(fromPodDefault(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "bad", Generation: 2}, Spec: *bad.spec}))
	conditions = e.conditionsOf(t, key{"team-a", "bad"})
	if c := conditions[kubeflowv1alpha1.ConditionAccepted]; c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "spec.env[1].name") || strings.Contains(c.Message, "secret") {
		t.Errorf("accepted: %+v", c)
	}
	if c := conditions[kubeflowv1alpha1.ConditionConflicting]; c.Status != metav1.ConditionFalse {
		t.Errorf("what is left out conflicts: %+v", c)
	}
	e.set(clusterPodDefault("all", "secret-1", nil))
	if c := e.conditionsOf(t, key{"", "all"})[kubeflowv1alpha1.ConditionUISelectable]; c.Status != metav1.ConditionFalse || c.Reason != "ClusterScoped" {
		t.Errorf("selectable: %+v", c)
	}
}

func TestConflictingTellsWhatBecomesOfPods(t *testing.T) {
	e := newTestEpoch(t)
	e.set(podDefault("team-a", "a", "p", "1"))
	set := func(policy kubeflowv1alpha1.ConflictPolicy, group string) string {
		b := podDefault("team-a", "b", "q", "2")
		b.spec.ConflictPolicy, b.spec.ExclusiveGroup = policy, group
		e.set(fromPodDefault(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "b", Generation: 2}, Spec: *b.spec}))
		c := e.conditionsOf(t, key{"team-a", "a"})[kubeflowv1alpha1.ConditionConflicting]
		return string(c.Status) + c.Message
	}
	set("", "")
	now := e.now().Add(e.pace.longest)
	e.now = func() time.Time { return now }
	e.plans[key{"team-a", "a"}].since = time.Time{} // it was written
	if got := set(kubeflowv1alpha1.ConflictSkip, ""); !strings.Contains(got, "conflictPolicy Skip of b") {
		t.Error(got)
	}
	if e.plans[key{"team-a", "a"}].since.IsZero() {
		t.Error("the other policy is no reason to write the status of the other object")
	}
	a := podDefault("team-a", "a", "p", "1")
	a.spec.ExclusiveGroup = "proxies"
	e.set(fromPodDefault(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a", Generation: 2}, Spec: *a.spec}))
	if got := set("", "proxies"); !strings.HasPrefix(got, "False") {
		t.Error("alternatives are reported:", got)
	}
}

func TestAStatusThatIsRightIsNotWritten(t *testing.T) {
	e := newTestEpoch(t)
	k := key{"team-a", "x"}
	e.set(podDefault("team-a", "x", "p", "1"))
	e.compareNow()
	o, next := e.next(k)
	if o == nil || len(next.Conditions) != 3 || next.ObservedGeneration != 1 {
		t.Fatalf("nothing is written: %+v", next)
	}
	e.written(k, o, next, "2", nil)
	// The watch tells of the write.
	seen := podDefault("team-a", "x", "p", "1")
	seen.resourceVersion, seen.status = "2", *next
	e.set(seen)
	e.compareNow()
	if !e.plans[k].since.IsZero() {
		t.Error("its own write makes the controller write again")
	}
	// Somebody else removes a condition.
	spoiled := podDefault("team-a", "x", "p", "1")
	spoiled.resourceVersion, spoiled.status = "3", *next.DeepCopy()
	meta.RemoveStatusCondition(&spoiled.status.Conditions, kubeflowv1alpha1.ConditionAccepted)
	e.set(spoiled)
	if e.plans[k].since.IsZero() {
		t.Error("a status that somebody else has changed stays as it is")
	}
}

func TestWritesForOneGenerationComeEverMoreSeldom(t *testing.T) {
	e := newTestEpoch(t)
	at := e.now()
	e.now = func() time.Time { return at }
	p := &plan{since: at, generation: 1}
	for writes, want := range []time.Duration{0, 15 * time.Second, time.Minute, 4 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		p.writes, p.last = writes, at
		if got := e.due(p, 1); got != want {
			t.Errorf("after %d writes it waits %s, want %s", writes, got, want)
		}
	}
	if got := e.due(p, 2); got != 0 {
		t.Errorf("a new generation waits %s", got)
	}
	p.writes, p.last = 5, at.Add(-time.Hour)
	if got := e.due(p, 2); got != 0 {
		t.Errorf("after a long time it waits %s", got)
	}
	e.changed[key{"team-a", "x"}] = struct{}{}
	if got := e.due(p, 2); got != defaultPace.quiet {
		t.Errorf("while others change it waits %s", got)
	}
	p.since = at.Add(-time.Minute)
	if got := e.due(p, 2); got != 0 {
		t.Errorf("it waits for ever: %s", got)
	}
	e.loading["namespaces"] = true
	if got := e.due(p, 2); got == 0 {
		t.Error("it is written before everything was read")
	}
}

func TestACrowdIsKeptInBounds(t *testing.T) {
	e := newTestEpoch(t)
	const many = mostKept + 10
	for i := range many {
		e.set(podDefault("team-a", fmt.Sprintf("object-%03d", i), fmt.Sprintf("label-%d", i), fmt.Sprint(i)))
	}
	e.compareNow()
	for k, n := range e.objects {
		if len(n.others) > mostKept || !n.more {
			t.Fatalf("%s keeps %d others", k, len(n.others))
		}
	}
	if c := e.conditionsOf(t, key{"team-a", "object-000"})[kubeflowv1alpha1.ConditionConflicting]; !strings.HasSuffix(c.Message, fmt.Sprintf("; and %d more at least", mostKept-namedOthers)) {
		t.Errorf("message: %s", c.Message)
	}
	// All but three go, one after the other: those three still know of each other, and of
	// nobody else.
	for i := range many - 3 {
		e.remove(key{"team-a", fmt.Sprintf("object-%03d", i)})
		e.compareNow()
	}
	var want []string
	for i := many - 3; i < many; i++ {
		for j := many - 3; j < many; j++ {
			if i != j {
				want = append(want, fmt.Sprintf("PodDefault team-a/object-%03d with PodDefault team-a/object-%03d", i, j))
			}
		}
	}
	if got := e.pairs(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for k, n := range e.objects {
		if n.more {
			t.Errorf("%s thinks that there are more", k)
		}
	}
}

// TestWhoIsKeptFollowsFromWhatIsThere compares statuses that came about by many changes
// with those of a controller that begins with the result.
func TestWhoIsKeptFollowsFromWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := bareEpoch()
		defer e.queue.ShutDown()
		there := map[key]*object{}
		for range rapid.IntRange(1, 150).Draw(t, "changes") {
			name := fmt.Sprintf("object-%02d", rapid.IntRange(0, 90).Draw(t, "name"))
			k := key{rapid.SampledFrom([]string{"team-a", "team-b", ""}).Draw(t, "namespace"), name}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				delete(there, k)
				e.remove(k)
			case 1:
				e.compareNow()
			case 2:
				e.setNamespace("team-b", labels.Set{"team": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "team")})
			default:
				label, value := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "label"), fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value"))
				o := podDefault(k.namespace, k.name, label, value)
				if k.namespace == "" {
					o = clusterPodDefault(k.name, value, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}})
				}
				there[k] = o
				e.set(o)
			}
		}
		e.compareNow()
		fresh := bareEpoch()
		defer fresh.queue.ShutDown()
		fresh.setNamespace("team-b", e.namespaces["team-b"])
		for _, o := range there {
			fresh.set(o)
		}
		fresh.compareNow()
		for k := range there {
			if got, want := conflicting(e.objects[k]), conflicting(fresh.objects[k]); got != want {
				t.Fatalf("%s: %+v, anew %+v", k, got, want)
			}
		}
		if e.conflicting != fresh.conflicting || len(e.claimed) != len(fresh.claimed) {
			t.Fatalf("%d conflicts at %d places, anew %d at %d", e.conflicting, len(e.claimed), fresh.conflicting, len(fresh.claimed))
		}
	})
}

// TestConflictsTakeLittleMemory has every object disagree with every other one, in three
// places: what is known of that grows with the number of objects, not of pairs.
func TestConflictsTakeLittleMemory(t *testing.T) {
	const most = 8 << 10 // bytes an object
	for _, many := range []int{1_000, 10_000} {
		e := bareEpoch()
		e.rules.overlap = func(_, b *object) []string { // what it takes to find out is not kept
			return []string{"env HTTPS_PROXY of " + b.name, "env HTTP_PROXY of " + b.name, "env NO_PROXY of " + b.name}
		}
		objects := make([]*object, many)
		for i := range objects {
			spec := envSpec(fmt.Sprintf("label-%d", i), fmt.Sprint(i))
			for _, name := range []string{"HTTPS_PROXY", "NO_PROXY"} {
				spec.Env = append(spec.Env, corev1.EnvVar{Name: name, Value: fmt.Sprint(i)})
			}
			objects[i] = fromPodDefault(&kubeflowv1alpha1.PodDefault{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("object-%05d", i), UID: "1", Generation: 1}, Spec: spec,
			})
		}
		before := heap()
		peak := before
		for i, o := range objects {
			e.set(o)
			if i%1_000 == 0 {
				e.compareNow()
				peak = max(peak, heap())
			}
		}
		e.compareNow()
		peak = max(peak, heap())
		t.Logf("%d objects: %d KiB", many, (peak-before)>>10)
		if peak-before > uint64(many)*most {
			t.Errorf("%d objects that conflict take %d MiB", many, (peak-before)>>20)
		}
		if e.conflicting != many {
			t.Errorf("%d of %d conflict", e.conflicting, many)
		}
		e.queue.ShutDown()
		runtime.KeepAlive(objects)
	}
}

// heap is what is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestComparisonsAreBounded(t *testing.T) {
	e := newTestEpoch(t)
	compared := 0
	e.rules.overlap = func(_, _ *object) []string { compared++; return nil }
	const many = mostCompared + 100
	for i := range many {
		e.set(podDefault("team-a", fmt.Sprint(i), fmt.Sprintf("label-%d", i), fmt.Sprint(i)))
	}
	e.compareNow()
	if compared > many*mostCompared {
		t.Errorf("%d comparisons of %d objects", compared, many)
	}
	if c := e.conditionsOf(t, key{"team-a", "0"})[kubeflowv1alpha1.ConditionConflicting]; c.Status != metav1.ConditionUnknown || c.Message == "" {
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
	for _, c := range claims(spec) {
		got = append(got, c.place)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAMessageThatIsCutFitsIntoAnEvent holds that a message has no more bytes than the API
// server takes of an event's, and ends with a whole character.
func TestAMessageThatIsCutFitsIntoAnEvent(t *testing.T) {
	const most = 1024 // pkg/apis/core/validation in Kubernetes: NoteLengthLimit
	for _, text := range []string{"a", "é", "…", "𝛼"} {
		for n := most - 8; n <= most+8; n++ {
			whole := strings.Repeat("x", n%4) + strings.Repeat(text, n/len(text))
			message := cut(whole)
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
