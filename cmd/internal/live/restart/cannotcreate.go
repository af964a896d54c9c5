// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hopeless is how many looks in a row must find that a controller cannot create pods.
const hopeless = 5

// failures are the events of a workload whose controller could not create a pod, each in the version that
// was seen last.
type failures map[types.UID]string

// failuresOf returns the failures of a workload so far: none for a Deployment, whose condition ends with
// the failure, and none if the user may not read events.
func (r Batches) failuresOf(ctx context.Context, w Workload) failures {
	out := failures{}
	events, err := r.failedCreates(ctx, w)
	if err != nil {
		return out // the look that follows fails, too
	}
	for i := range events {
		out[events[i].UID] = events[i].ResourceVersion
	}
	return out
}

// cannotCreate returns why the controller of a workload cannot create its pods: the condition of a Deployment, or
// the last event of another workload since the restart if no pod of the workload was created after it. It is
// empty if nothing says so, or the user may not read it.
func (r Batches) cannotCreate(ctx context.Context, w Workload, before failures) (string, error) {
	if w.Kind == "Deployment" {
		d, err := r.Client.AppsV1().Deployments(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				return c.Message, nil
			}
		}
		return "", nil
	}
	events, err := r.failedCreates(ctx, w)
	if err != nil {
		return "", err
	}
	why, at := "", time.Time{}
	for i := range events {
		if e := &events[i]; before[e.UID] != e.ResourceVersion && lastSeen(e).After(at) {
			why, at = e.Message, lastSeen(e)
		}
	}
	if why == "" {
		return "", nil
	}
	created, err := r.lastCreated(ctx, w)
	if err != nil || !created.Before(at) {
		return "", err
	}
	return why, nil
}

// failedCreates returns the events of a StatefulSet or DaemonSet about pods that could not be created. Those
// of a Deployment are about its ReplicaSets.
func (r Batches) failedCreates(ctx context.Context, w Workload) ([]corev1.Event, error) {
	if w.Kind == "Deployment" {
		return nil, nil
	}
	events, err := r.Client.CoreV1().Events(w.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate,involvedObject.kind=" + w.Kind + ",involvedObject.name=" + w.Name})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return events.Items, nil
}

// lastSeen returns when an event was last observed, as either of its APIs records it.
func lastSeen(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at.Truncate(time.Second) // as precise as creationTimestamp
}

// lastCreated returns when the newest pod of a StatefulSet or DaemonSet was created.
func (r Batches) lastCreated(ctx context.Context, w Workload) (time.Time, error) {
	var owner types.UID
	var selector *metav1.LabelSelector
	if w.Kind == "StatefulSet" {
		s, err := r.Client.AppsV1().StatefulSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, err
		}
		owner, selector = s.UID, s.Spec.Selector
	} else {
		d, err := r.Client.AppsV1().DaemonSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, err
		}
		owner, selector = d.UID, d.Spec.Selector
	}
	pods, err := r.Client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for i := range pods.Items {
		if by := metav1.GetControllerOf(&pods.Items[i]); by != nil && by.UID == owner && pods.Items[i].CreationTimestamp.After(last) {
			last = pods.Items[i].CreationTimestamp.Time
		}
	}
	return last, nil
}
