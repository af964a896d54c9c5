// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	// maxSlowdown is how much slower the creates of another namespace may be meanwhile: of their
	// 99th percentile. Where the API server's own work with such pods slows them down more than
	// that, maxBeside is how much slower they may be than with that work alone.
	maxSlowdown = 3
	maxBeside   = 1.5
	// quietRate is that of the other namespace: one that is waited for by people.
	quietRate = 20
)

// tenantFlood has ten callers create pods, dry, in a namespace whose PodDefaults make each of
// them expensive, and looks at what creates in another namespace take meanwhile.
func tenantFlood(ctx context.Context, c *cluster, _ int, out *result) error {
	const callers, podDefaults = 10, 20
	length := 30 * time.Second
	if c.settings.short {
		length = 4 * time.Second
	}
	quiet, loud := c.namespace, c.namespace+"-loud"
	if err := c.createNamespace(ctx, loud); err != nil {
		return err
	}
	for i := range podDefaults {
		pd := &v1alpha1.PodDefault{
			ObjectMeta: metav1.ObjectMeta{Namespace: loud, Name: podDefaultName(i)},
			Spec:       v1alpha1.PodDefaultSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"loud": "true"}}},
		}
		pd.Spec.Env = variablesOf(i)
		if err := c.objects.Create(ctx, pd); err != nil {
			return err
		}
	}
	live, err := c.deployLimited(ctx)
	if err != nil {
		return err
	}
	measure := func(name string) (tally, error) {
		c.namespace = quiet
		s, err := c.startStreamAt(ctx, name, typicalPodDefaults, quietRate)
		if err != nil {
			return tally{}, err
		}
		lab.Sleep(ctx, length)
		return s.stop(ctx, out), nil
	}
	idle, err := measure("idle")
	if err != nil {
		return err
	}

	// The API server has its own work with such pods, for which nobody else is to blame: the same
	// pods, as they are after injection, are what that costs.
	finished := newPod("", 0, typicalPodDefaults)
	for i := range podDefaults {
		finished.Spec.Containers[0].Env = append(finished.Spec.Containers[0].Env, variablesOf(i)...)
	}
	finished.Labels = nil
	selecting := newPod("", 0, typicalPodDefaults)
	selecting.Labels = map[string]string{"loud": "true"}
	beside := func(name string, loudPod *corev1.Pod) (_ tally, admitted int64, err error) {
		flood, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		var asked, answered atomic.Int64
		for range callers {
			group.Go(func() {
				for flood.Err() == nil {
					pod := loudPod.DeepCopy()
					pod.Name = fmt.Sprintf("%s-%d", name, asked.Add(1))
					ctx, cancel := context.WithTimeout(flood, createTimeout)
					if _, err := c.clients.CoreV1().Pods(loud).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
						answered.Add(1)
					}
					cancel()
				}
			})
		}
		t, err := measure(name)
		stop()
		group.Wait()
		return t, answered.Load(), err
	}
	control, admittedAsTheyAre, err := beside("control", finished)
	if err != nil {
		return err
	}
	attacked, admitted, err := beside("attacked", selecting)
	if err != nil {
		return err
	}
	for _, t := range []tally{idle, control, attacked} {
		out.requireNothingLost(t)
	}
	before, alone, during := percentile99(idle.took), percentile99(control.took), percentile99(attacked.took)
	out.notef("p99 of creates %s; while %d expensive pods are injected %s; while %d pods that need no injection are created, as large as those, %s",
		before.Round(time.Millisecond), admitted, during.Round(time.Millisecond), admittedAsTheyAre, alone.Round(time.Millisecond))
	if most := max(maxSlowdown*before, time.Duration(maxBeside*float64(alone))); during > most {
		out.problemf("the 99th percentile of another namespace's creates is %s under attack, and may be %s", during, most)
	}
	live[0].checkMemory(out, memoryLimit)
	if err := c.objects.DeleteAllOf(ctx, &v1alpha1.PodDefault{}, client.InNamespace(loud)); err != nil {
		return err
	}
	return c.withdraw(ctx, live)
}

// percentile99 is the 99th percentile.
func percentile99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[(len(sorted)*99-1)/100]
}

// variablesOf are those of the i-th PodDefault that makes pods expensive.
func variablesOf(i int) []corev1.EnvVar {
	env := make([]corev1.EnvVar, 200)
	for j := range env {
		env[j] = corev1.EnvVar{Name: fmt.Sprintf("V_%d_%d", i, j), Value: "a value of some length, as that of a proxy, and more"}
	}
	return env
}
