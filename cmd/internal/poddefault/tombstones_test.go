// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
)

// goneWorld is a watcher with known objects and a stopped clock.
type goneWorld struct {
	*source.Watcher
	at time.Time
}

func newGoneWorld(t *testing.T) *goneWorld {
	t.Helper()
	watcher, err := source.Watch(store.NewFactory(&rest.Config{}, slog.New(slog.DiscardHandler)), source.WatchOptions{Recorded: true}, slog.New(slog.DiscardHandler), func() {})
	if err != nil {
		t.Fatal(err)
	}
	watcher.PodDefaults.Replace(nil)
	watcher.ClusterPodDefaults.Replace(nil)
	watcher.Namespaces.Replace([]*store.Namespace{{Name: "team-a", Labels: map[string]string{"tier": "gold"}}})
	watcher.ExemptionStore.Replace(nil)
	watcher.Revisions.Replace(nil, nil)
	w := &goneWorld{Watcher: watcher, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.SetClock(func() time.Time { return w.at })
	return w
}

func gonePodDefault(name, uid, label string) *kubeflowv1alpha1.PodDefault {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(uid)}}
	pd.Spec.Selector.MatchLabels = map[string]string{label: "true"}
	pd.Spec.Env = []corev1.EnvVar{{Name: strings.ToUpper(name), Value: "1"}}
	return pd
}

// review returns the pod after the webhook.
func (w *goneWorld) review(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	webhook, err := New(w.Watcher, DefaultSettings(), WithGone(w.Gone))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	response, err := webhook.Handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
		Resource: podResource, Namespace: "team-a", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	})
	if err != nil || !response.Allowed {
		t.Fatalf("%v %+v", err, response)
	}
	if len(response.Patch) > 0 {
		patch, err := jsonpatchv4.DecodePatch(response.Patch.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatalf("%s: %v", response.Patch.AppendJSON(nil), err)
		}
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPodsTellOfObjectsThatAreGone(t *testing.T) {
	everywhere := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere", UID: "3"}}
	everywhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	everywhere.Spec.Selector.MatchLabels = map[string]string{"old": "true"}
	old, adds := gonePodDefault("old", "1", "old"), gonePodDefault("adds", "2", "new")
	adds.Spec.Labels = map[string]string{"old": "true"}
	audit := gonePodDefault("old", "1", "old")
	audit.Spec.Mode = kubeflowv1alpha1.ModeAudit
	oldGone, everywhereGone := "old#"+plan.Compile(old).Version(), "cluster/everywhere#"+plan.CompileCluster(everywhere).Version()
	deleted := func(c *plan.Plan) func(*goneWorld) {
		return func(w *goneWorld) {
			if c.Cluster() {
				w.ClusterPodDefaults.Delete(c.Identity().NamespacedName)
			} else {
				w.PodDefaults.Delete(c.Identity().NamespacedName)
			}
		}
	}
	updated := func(pd *kubeflowv1alpha1.PodDefault) func(*goneWorld) {
		return func(w *goneWorld) { w.PodDefaults.Set(plan.Compile(pd)) }
	}
	otherEnv := gonePodDefault("old", "1", "old")
	otherEnv.Spec.Env = nil
	for name, test := range map[string]struct {
		then        func(*goneWorld)
		labels      map[string]string
		annotations map[string]string
		want        string
	}{
		"nothing has gone":                     {func(*goneWorld) {}, map[string]string{"old": "true"}, nil, ""},
		"an object is deleted":                 {deleted(plan.Compile(old)), map[string]string{"old": "true"}, nil, oldGone},
		"the pod has annotations":              {deleted(plan.Compile(old)), map[string]string{"old": "true"}, map[string]string{"a": "b"}, oldGone},
		"it never selected the pod":            {deleted(plan.Compile(old)), map[string]string{"other": "true"}, nil, ""},
		"it selects other pods now":            {updated(gonePodDefault("old", "1", "other")), map[string]string{"old": "true"}, nil, oldGone},
		"it is in mode Audit now":              {updated(audit), map[string]string{"old": "true"}, nil, oldGone},
		"it was created again":                 {updated(gonePodDefault("old", "9", "old")), map[string]string{"old": "true"}, nil, oldGone},
		"it injects something else":            {updated(otherEnv), map[string]string{"old": "true"}, nil, ""},
		"a list does not have it":              {func(w *goneWorld) { w.PodDefaults.Replace([]*plan.Plan{plan.Compile(adds)}) }, map[string]string{"old": "true"}, nil, oldGone},
		"its label comes from another":         {deleted(plan.Compile(old)), map[string]string{"new": "true"}, nil, oldGone},
		"one of the cluster":                   {deleted(plan.CompileCluster(everywhere)), map[string]string{"old": "true"}, nil, everywhereGone},
		"one of the cluster is not in a list":  {func(w *goneWorld) { w.ClusterPodDefaults.Replace(nil) }, map[string]string{"old": "true"}, nil, everywhereGone},
		"both":                                 {func(w *goneWorld) { deleted(plan.Compile(old))(w); deleted(plan.CompileCluster(everywhere))(w) }, map[string]string{"old": "true"}, nil, everywhereGone + "," + oldGone},
		"that was long ago":                    {func(w *goneWorld) { deleted(plan.Compile(old))(w); w.at = w.at.Add(source.KeptGone + 1) }, map[string]string{"old": "true"}, nil, ""},
		"the pod excludes itself":              {deleted(plan.Compile(old)), map[string]string{"old": "true"}, map[string]string{meta.ExcludeAnnotation: "true"}, ""},
		"another replica has told of one more": {deleted(plan.Compile(old)), map[string]string{"old": "true"}, map[string]string{meta.GoneAnnotation: "more#123456"}, "more#123456," + oldGone},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGoneWorld(t)
			w.PodDefaults.Set(plan.Compile(old))
			w.PodDefaults.Set(plan.Compile(adds))
			w.ClusterPodDefaults.Set(plan.CompileCluster(everywhere))
			test.then(w)
			out := w.review(t, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: test.labels, Annotations: test.annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			})
			if got := out.Annotations[meta.GoneAnnotation]; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for key, value := range test.annotations {
				if key != meta.GoneAnnotation && out.Annotations[key] != value {
					t.Errorf("annotations: %v", out.Annotations)
				}
			}
			again := w.review(t, out)
			if a, b := fmt.Sprint(out), fmt.Sprint(again); a != b {
				t.Errorf("a second review changes the pod:\n%s\n%s", a, b)
			}
		})
	}
}
