// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/test/golden"
)

const (
	revisionNew    = "0123456789abcdef0123456789abcdef"
	revisionBefore = "fedcba9876543210fedcba9876543210"
)

// A readyCase is a state of an object, and what tools must make of it: the module cmd/test/gitops
// reads testdata/ready.yaml, and asks kstatus and Argo CD's script.
type readyCase struct {
	State   string         `json:"state"`
	KStatus string         `json:"kstatus"`
	ArgoCD  string         `json:"argoCD"`
	Object  map[string]any `json:"object"`
}

func TestReadyOfEachState(t *testing.T) {
	seconds := int64(60)
	held := kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{HoldSeconds: &seconds}, {}}}
	paused, aborted := held, held
	paused.Paused, aborted.AbortedRevision = true, revisionNew
	in := func(step int32) *kubeflowv1alpha1.RolloutStatus {
		return &kubeflowv1alpha1.RolloutStatus{StableRevision: revisionBefore, Step: step}
	}
	healthy := metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionTrue, Reason: reasonRunning}
	accepted := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kubeflowv1alpha1.ConditionAccepted, Status: status, Reason: reason, Message: message}
	}
	valid := accepted(metav1.ConditionTrue, "Valid", "")
	const current, inProgress, failed = "Current", "InProgress", "Failed"
	var cases []readyCase
	for _, tc := range []struct {
		state           string
		accepted        metav1.Condition
		health          *metav1.Condition
		rollout         *kubeflowv1alpha1.Rollout
		status          *kubeflowv1alpha1.RolloutStatus
		revision        string // of the status; the new one if empty
		unobserved      bool
		ready           metav1.ConditionStatus
		reason          string
		stalled         bool
		kstatus, argoCD string
	}{
		{state: "written, and not seen yet", accepted: valid, unobserved: true, ready: metav1.ConditionTrue, reason: reasonApplied, kstatus: inProgress, argoCD: "Progressing"},
		{state: "applied", accepted: valid, ready: metav1.ConditionTrue, reason: reasonApplied, kstatus: current, argoCD: "Healthy"},
		{state: "applied, with warnings", accepted: accepted(metav1.ConditionTrue, "ValidWithWarnings", "spec.selector: it is empty"), ready: metav1.ConditionTrue, reason: reasonApplied, kstatus: current, argoCD: "Healthy"},
		{state: "invalid", accepted: accepted(metav1.ConditionFalse, "Invalid", "it can never work"), ready: metav1.ConditionFalse, reason: "Invalid", stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "invalid, with a rollout", accepted: accepted(metav1.ConditionFalse, "Invalid", "it can never work"), rollout: &held, status: in(1), ready: metav1.ConditionFalse, reason: "Invalid", stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "selecting Secrets that the server does not know", accepted: accepted(metav1.ConditionFalse, "NotConnected", "set dataConnections"), ready: metav1.ConditionFalse, reason: "NotConnected", stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "without room in the backstop", accepted: accepted(metav1.ConditionTrue, reasonNoRoom, "no room"), ready: metav1.ConditionFalse, reason: reasonNoRoom, stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "rolled out", accepted: valid, rollout: &held, status: &kubeflowv1alpha1.RolloutStatus{StableRevision: revisionNew}, ready: metav1.ConditionTrue, reason: reasonApplied, kstatus: current, argoCD: "Healthy"},
		{state: "a new revision before the first step", accepted: valid, rollout: &held, status: in(0), revision: revisionBefore, ready: metav1.ConditionUnknown, reason: reasonRolling, kstatus: inProgress, argoCD: "Progressing"},
		{state: "a rollout that nothing is known about", accepted: valid, rollout: &held, ready: metav1.ConditionUnknown, reason: reasonRolling, kstatus: inProgress, argoCD: "Progressing"},
		{state: "a step that lasts a minute", accepted: valid, rollout: &held, status: in(1), health: &healthy, ready: metav1.ConditionUnknown, reason: reasonRolling, kstatus: inProgress, argoCD: "Progressing"},
		{state: "a step that waits for a promotion", accepted: valid, rollout: &held, status: in(2), health: &healthy, ready: metav1.ConditionTrue, reason: reasonAwaiting, kstatus: current, argoCD: "Suspended"},
		{state: "a paused rollout", accepted: valid, rollout: &paused, status: in(1), health: &healthy, ready: metav1.ConditionTrue, reason: reasonAwaiting, kstatus: current, argoCD: "Suspended"},
		{state: "a rollout whose pods fail", accepted: valid, rollout: &held, status: in(1), health: &metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionFalse, Reason: reasonFailing, Message: "2 of 3 pods fail"}, ready: metav1.ConditionFalse, reason: reasonFailing, stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "a rollout whose pods are refused, in a step that waits", accepted: valid, rollout: &held, status: in(2), health: &metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionFalse, Reason: reasonRefused, Message: "1 of 5"}, ready: metav1.ConditionFalse, reason: reasonRefused, stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "an aborted rollout", accepted: valid, rollout: &aborted, status: in(0), ready: metav1.ConditionFalse, reason: reasonAborted, stalled: true, kstatus: failed, argoCD: "Degraded"},
		{state: "revisions that cannot be read", accepted: valid, rollout: &held, health: &metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionUnknown, Reason: reasonUnavailable, Message: "changes are not staged"}, ready: metav1.ConditionFalse, reason: reasonUnavailable, kstatus: inProgress, argoCD: "Progressing"},
	} {
		status := &kubeflowv1alpha1.PodDefaultStatus{ObservedGeneration: 2, CurrentRevision: revisionNew, Rollout: tc.status}
		if tc.revision != "" {
			status.CurrentRevision = tc.revision
		}
		tc.accepted.ObservedGeneration = 2
		meta.SetStatusCondition(&status.Conditions, tc.accepted)
		if tc.health != nil {
			meta.SetStatusCondition(&status.Conditions, *tc.health)
		}
		setReadiness(status, tc.rollout, revisionNew, 2)
		ready := meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionReady)
		stalled := meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionStalled)
		if ready.Status != tc.ready || ready.Reason != tc.reason || ready.ObservedGeneration != 2 || (stalled != nil) != tc.stalled {
			t.Errorf("%s: Ready is %+v, Stalled %+v", tc.state, ready, stalled)
		}
		if ready.Status == metav1.ConditionFalse && ready.Message == "" {
			t.Errorf("%s: the condition Ready says nothing", tc.state)
		}
		object := onServer("a", "a", "1")
		if object.Generation = 2; tc.unobserved {
			object.Generation = 3
		}
		for i := range status.Conditions { // the file must not change each time
			status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		object.Spec, object.Status = kubeflowv1alpha1.PodDefaultSpec{Rollout: tc.rollout}, *status
		cases = append(cases, readyCase{tc.state, tc.kstatus, tc.argoCD, asMap(t, object)})
	}
	cases = append(cases, readyCase{"created, and not seen yet", inProgress, "Progressing", asMap(t, map[string]any{
		"apiVersion": kubeflowv1alpha1.GroupVersion.String(), "kind": kubeflowv1alpha1.PodDefaultKind,
		"metadata": map[string]any{"name": "a", "namespace": "default", "generation": 1}, "status": map[string]any{"observedGeneration": -1}, // its default
	})})
	text, err := yaml.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/ready.yaml", string(text))
}

// What ended is no longer stalled, and what is about another generation stays as it is.
func TestReadyFollowsTheStatus(t *testing.T) {
	status := &kubeflowv1alpha1.PodDefaultStatus{}
	setReadiness(status, nil, revisionNew, 1)
	if len(status.Conditions) > 0 {
		t.Errorf("without the condition Accepted there are %+v", status.Conditions)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kubeflowv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Invalid", Message: "x", ObservedGeneration: 1})
	setReadiness(status, nil, revisionNew, 1)
	if !meta.IsStatusConditionTrue(status.Conditions, kubeflowv1alpha1.ConditionStalled) {
		t.Fatalf("an invalid object has %+v", status.Conditions)
	}
	setReadiness(status, nil, revisionNew, 2)
	if c := meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionReady); c.ObservedGeneration != 1 {
		t.Errorf("of another generation: %+v", c)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kubeflowv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Valid", ObservedGeneration: 2})
	setReadiness(status, nil, revisionNew, 2)
	if !meta.IsStatusConditionTrue(status.Conditions, kubeflowv1alpha1.ConditionReady) || meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionStalled) != nil {
		t.Errorf("a corrected object has %+v", status.Conditions)
	}
}

func asMap(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := yaml.Marshal(value)
	out := map[string]any{}
	if err == nil {
		err = yaml.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
