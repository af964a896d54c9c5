// SPDX-License-Identifier: Apache-2.0

package exemptions

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/test/golden"
)

// TestStates writes testdata/states.yaml, of which cmd/test/gitops asks kstatus and Argo CD's
// health check.
func TestStates(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	type state struct {
		State   string                       `json:"state"`
		KStatus string                       `json:"kstatus"`
		ArgoCD  string                       `json:"argoCD"`
		Object  *sallyportv1alpha1.Exemption `json:"object"`
	}
	object := func(change func(*sallyportv1alpha1.Exemption)) *sallyportv1alpha1.Exemption {
		e := &sallyportv1alpha1.Exemption{
			TypeMeta:   metav1.TypeMeta{APIVersion: sallyportv1alpha1.GroupVersion.String(), Kind: sallyportv1alpha1.ExemptionKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "rsync", Generation: 3, ResourceVersion: "7"},
			Spec: sallyportv1alpha1.ExemptionSpec{
				Until: metav1.NewTime(now.Add(time.Hour)), PodDefaults: []string{"proxy"}, Workloads: []string{"*"}, Reason: "breaks rsync",
			},
			Status: sallyportv1alpha1.ExemptionStatus{ObservedGeneration: -1},
		}
		if change != nil {
			change(e)
		}
		return e
	}
	later := func(e *sallyportv1alpha1.Exemption) { e.Spec.Until = metav1.NewTime(now) }
	invalid := func(e *sallyportv1alpha1.Exemption) { e.Spec.Workloads = []string{"web"} }
	var out []state
	for _, tc := range []struct {
		state, kstatus, argoCD string
		object                 *sallyportv1alpha1.Exemption
		counts                 bool
		pods                   *int32
		inForce, ready         metav1.ConditionStatus
		reason                 string
	}{
		{"in force", "Current", "Healthy", object(nil), true, new(int32(2)), metav1.ConditionTrue, metav1.ConditionTrue, "InForce"},
		{"in force, and pods are not counted", "Current", "Healthy", object(nil), true, nil, metav1.ConditionTrue, metav1.ConditionTrue, "InForce"},
		{"ended", "Current", "Healthy", object(later), true, new(int32(0)), metav1.ConditionFalse, metav1.ConditionTrue, "Ended"},
		{"the server has no maxExemption", "Failed", "Degraded", object(nil), false, new(int32(0)), metav1.ConditionFalse, metav1.ConditionFalse, "Off"},
		{"invalid", "Failed", "Degraded", object(invalid), true, new(int32(0)), metav1.ConditionFalse, metav1.ConditionFalse, "Invalid"},
	} {
		status := desired(exempt.Keep(tc.object), tc.counts, tc.pods, now)
		force := apimeta.FindStatusCondition(status.Conditions, sallyportv1alpha1.ConditionInForce)
		ready := apimeta.FindStatusCondition(status.Conditions, sallyportv1alpha1.ConditionReady)
		if force.Status != tc.inForce || ready.Status != tc.ready || ready.Reason != tc.reason || force.Reason != tc.reason {
			t.Errorf("%s: %+v, %+v", tc.state, force, ready)
		}
		if (status.EndTime != nil) != (tc.ready == metav1.ConditionTrue) || status.Pods != nil && status.EndTime == nil {
			t.Errorf("%s: it ends at %v, pods %v", tc.state, status.EndTime, status.Pods)
		}
		tc.object.Status = *status
		if again := desired(exempt.Keep(tc.object), tc.counts, tc.pods, now.Add(time.Second)); !equality.Semantic.DeepEqual(again, status) {
			t.Errorf("%s: a second look differs:\n%s", tc.state, cmp.Diff(status, again))
		}
		out = append(out, state{tc.state, tc.kstatus, tc.argoCD, tc.object})
		if tc.state == "invalid" { // corrected: Stalled goes, the message too
			tc.object = tc.object.DeepCopy()
			tc.object.Spec.Workloads, tc.object.Generation = []string{"*"}, 4
			status := desired(exempt.Keep(tc.object), true, nil, now)
			if !apimeta.IsStatusConditionTrue(status.Conditions, sallyportv1alpha1.ConditionReady) || status.ObservedGeneration != 4 ||
				slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == sallyportv1alpha1.ConditionStalled || c.Message != "" }) {
				t.Errorf("corrected: %+v", status)
			}
		}
	}
	out = append(out, state{"new", "InProgress", "Progressing", object(nil)})
	text, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/states.yaml", string(text))
}
