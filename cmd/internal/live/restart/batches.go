// SPDX-License-Identifier: Apache-2.0

// Package restart restarts workloads whose pods differ from what they would get now, in batches, and waits
// until each has replaced its pods.
package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// restartedAt is the annotation of pod templates that `kubectl rollout restart` writes.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// Batches restart drifted workloads, as `kubectl rollout restart` does: it
// changes an annotation of the pod template, and the workload's controller replaces the
// pods by its own strategy. A batch begins when all workloads of the one before have
// replaced theirs.
type Batches struct {
	Client kubernetes.Interface
	// BatchSize is the number of workloads of a batch.
	BatchSize int
	// Timeout limits a batch.
	Timeout time.Duration
	// DryRun lets the API server validate the changes without storing them.
	DryRun bool
	// Confirm is asked before anything is restarted; nil to ask nobody.
	Confirm io.Reader
	// Out gets a line for each workload.
	Out io.Writer
	// Obstacle returns why a workload is not restarted, such as that its new pods would be refused; empty if it is. Nil
	// asks nobody.
	Obstacle func(ctx context.Context, kind, namespace, name string) (string, error)

	poll time.Duration // between looks at a workload; 0 is a second
}

// A Workload is one that can be restarted: a Deployment, StatefulSet or DaemonSet.
type Workload struct{ Namespace, Kind, Name string }

func (w Workload) String() string { return w.Namespace + " " + strings.ToLower(w.Kind) + "/" + w.Name }

// Run restarts the workloads; others are those that cannot be restarted. It stops after a batch in which one fails, with an
// error about all of that batch. Remains reports whether drifted workloads remain: those
// that cannot be restarted, or all without a yes and in a dry run.
func (r Batches) Run(ctx context.Context, all []Workload, others []string) (remains bool, err error) {
	if len(others) > 0 {
		r.tell("note: not restarted, replace their pods yourself: %s", strings.Join(others, ", "))
	}
	if len(all) > 0 && !r.DryRun && r.Confirm != nil {
		question := fmt.Sprintf("Restart %s, %d at a time?", cli.Count(len(all), "workload", "workloads"), min(r.BatchSize, len(all)))
		if agreed, err := cli.Confirm(r.Confirm, r.Out, question); err != nil || !agreed {
			r.tell("nothing was restarted")
			return true, err
		}
	}
	done := 0
	for batch := range slices.Chunk(all, r.BatchSize) {
		ctx, cancel := context.WithTimeout(ctx, r.Timeout)
		err := r.batch(ctx, batch)
		cancel()
		if err != nil {
			return true, fmt.Errorf("stopped after %d of %s: %w", done, cli.Count(len(all), "workload", "workloads"), err)
		}
		if done += len(batch); !r.DryRun {
			r.tell("%d of %s restarted", done, cli.Count(len(all), "workload", "workloads"))
		}
	}
	return r.DryRun || len(others) > 0, nil
}

func (r Batches) tell(format string, args ...any) {
	manifest.Note(r.Out, format, args...)
}

func (r Batches) batch(ctx context.Context, batch []Workload) error {
	var errs []error
	before := make([]failures, len(batch))
	for i, w := range batch {
		before[i] = r.failuresOf(ctx, w)
		switch err := r.restart(ctx, w); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", w, err))
		case r.DryRun:
			r.tell("%s would be restarted (dry run)", w)
		default:
			r.tell("%s restarted", w)
		}
	}
	if len(errs) > 0 || r.DryRun {
		return errors.Join(errs...)
	}
	for i, w := range batch {
		if err := r.wait(ctx, w, before[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w, err))
		}
	}
	return errors.Join(errs...)
}

// restart changes the annotation. `kubectl rollout restart` refuses a paused Deployment
// too.
func (r Batches) restart(ctx context.Context, w Workload) error {
	if r.Obstacle != nil {
		why, err := r.Obstacle(ctx, w.Kind, w.Namespace, w.Name)
		if err != nil {
			return fmt.Errorf("finding out whether its new pods would be admitted: %w", err)
		}
		if why != "" {
			return fmt.Errorf("not restarted: %s. Correct that first, or restart it anyway with --force", why)
		}
	}
	apps := r.Client.AppsV1()
	if w.Kind == "Deployment" {
		d, err := apps.Deployments(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Spec.Paused {
			return fmt.Errorf("it is paused: resume it first, with kubectl rollout resume -n %s deployment/%s", w.Namespace, w.Name)
		}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{restartedAt: time.Now().Format(time.RFC3339)}},
	}}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: "sallyport"}
	if r.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	switch w.Kind {
	case "Deployment":
		_, err = apps.Deployments(w.Namespace).Patch(ctx, w.Name, types.StrategicMergePatchType, patch, options)
	case "StatefulSet":
		_, err = apps.StatefulSets(w.Namespace).Patch(ctx, w.Name, types.StrategicMergePatchType, patch, options)
	case "DaemonSet":
		_, err = apps.DaemonSets(w.Namespace).Patch(ctx, w.Name, types.StrategicMergePatchType, patch, options)
	}
	return err
}

// wait waits until the workload has replaced its pods. Before are its failures from before the restart.
func (r Batches) wait(ctx context.Context, w Workload, before failures) error {
	poll := r.poll
	if poll == 0 {
		poll = time.Second
	}
	waitsFor, failed := "", 0
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		state, err := rolledOut(ctx, r.Client.AppsV1(), w)
		if err != nil {
			return false, err
		}
		if state != "" && state != waitsFor {
			r.tell("%s: %s", w, state)
		}
		waitsFor = state
		if state == "" {
			return true, nil
		}
		why, err := r.cannotCreate(ctx, w, before)
		if err != nil || why == "" {
			failed = 0
			return false, err
		}
		if failed++; failed >= hopeless {
			return false, fmt.Errorf("%s: its pods cannot be created: %s", state, why)
		}
		return false, nil
	})
	waitsFor = cmp.Or(waitsFor, "not looked at")
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s after %s: find out why with kubectl rollout status -n %s %s/%s, or set --timeout", waitsFor, r.Timeout, w.Namespace, strings.ToLower(w.Kind), w.Name)
	}
	return err
}

// rolledOut returns what a workload still waits for, as `kubectl rollout status` decides
// it, or "".
func rolledOut(ctx context.Context, apps typedappsv1.AppsV1Interface, w Workload) (string, error) {
	const unobserved = "waiting for its controller"
	waiting := func(updated, available, desired, total int32) string {
		switch {
		case updated < desired:
			return fmt.Sprintf("%d of %d pods replaced", updated, desired)
		case total > updated:
			return fmt.Sprintf("%s to end", cli.Count(int(total-updated), "old pod has", "old pods have"))
		case available < updated:
			return fmt.Sprintf("%d of %d new pods available", available, updated)
		}
		return ""
	}
	switch w.Kind {
	case "Deployment":
		d, err := apps.Deployments(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if d.Status.ObservedGeneration < d.Generation {
			return unobserved, nil
		}
		return waiting(d.Status.UpdatedReplicas, d.Status.AvailableReplicas, *d.Spec.Replicas, d.Status.Replicas), nil
	case "StatefulSet":
		s, err := apps.StatefulSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		switch {
		case s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType: // its pods are replaced when somebody deletes them
			return "", nil
		case s.Status.ObservedGeneration < s.Generation:
			return unobserved, nil
		}
		desired := *s.Spec.Replicas
		if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
			desired = max(0, desired-*rolling.Partition)
		}
		return waiting(s.Status.UpdatedReplicas, s.Status.AvailableReplicas, desired, s.Status.UpdatedReplicas), nil
	default:
		d, err := apps.DaemonSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		switch {
		case d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
			return "", nil
		case d.Status.ObservedGeneration < d.Generation:
			return unobserved, nil
		}
		return waiting(d.Status.UpdatedNumberScheduled, d.Status.NumberAvailable, d.Status.DesiredNumberScheduled, d.Status.UpdatedNumberScheduled), nil
	}
}
