// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/test/lab"
)

// conflicting has thousands of PodDefaults that all disagree with each other, and replicas
// with the memory of the container. The leader has to say so in the status of each; it is
// killed in each round, and the next one begins anew.
func conflicting(ctx context.Context, c *cluster, rounds int, out *result) error {
	many := 10_000
	if c.settings.short {
		many = 1_000
	}
	began := time.Now()
	if err := c.createConflicting(ctx, many); err != nil {
		return err
	}
	c.progress.sayf("  %d PodDefaults after %s", many, time.Since(began).Round(time.Second))
	for round := range rounds {
		began := time.Now()
		live := make([]*replica, 2)
		for i := range live {
			var err error
			if live[i], err = c.startLimited(); err != nil {
				return err
			}
		}
		for _, r := range live {
			if err := r.awaitReady(ctx); err != nil {
				return err
			}
			if err := c.addEndpoint(ctx, r); err != nil {
				return err
			}
		}
		if err := c.awaitInjection(ctx); err != nil {
			return err
		}
		s, err := c.startStream(ctx, fmt.Sprintf("pod-%d", round), typicalPodDefaults)
		if err != nil {
			return err
		}
		if _, err := awaitOne(ctx, 5*time.Minute, live, "sallyport_poddefaults_conflicting", float64(many)); err != nil {
			out.problemf("%v", err)
		}
		out.notef("%d conflicts known after %.0f s", many, time.Since(began).Seconds())
		if !lab.Sleep(ctx, 10*time.Second) { // the statuses are written
			return ctx.Err()
		}
		out.requireNothingLost(s.stop(ctx, out))
		for _, r := range live {
			r.checkMemory(out, memoryLimit)
		}
		if err := c.withdraw(ctx, live); err != nil {
			return err
		}
		if err := c.dropLeases(ctx); err != nil {
			return err
		}
	}
	return nil
}

// createConflicting makes PodDefaults that set the same three variables, each in its own way
// and for pods of its own.
func (c *cluster) createConflicting(ctx context.Context, many int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range many {
		group.Go(func() error {
			name := fmt.Sprintf("conflicting-%05d", i)
			pd := &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
			pd.Spec.Selector.MatchLabels = map[string]string{name: "true"}
			for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
				pd.Spec.Env = append(pd.Spec.Env, corev1.EnvVar{Name: variable, Value: name})
			}
			return c.objects.Create(ctx, pd)
		})
	}
	return group.Wait()
}

// awaitOne returns the replica whose metric has the value.
func awaitOne(ctx context.Context, patience time.Duration, live []*replica, metric string, want float64) (one *replica, err error) {
	err = lab.Await(ctx, patience, fmt.Sprintf("%s of %v", metric, want), func(ctx context.Context) error {
		var got []float64
		for _, r := range live {
			if r.HasEnded() {
				return lab.Final(r.Failed())
			}
			value, err := r.metric(ctx, metric)
			if err != nil {
				return err
			}
			if value == want {
				one = r
				return nil
			}
			got = append(got, value)
		}
		return fmt.Errorf("it is %v", got)
	})
	return one, err
}

// leaderGone kills the leader right before a PodDefault is deleted, and another one selects
// other pods than before. The policy knows of neither until there is another leader; pods
// that they have selected must still be created.
func leaderGone(ctx context.Context, c *cluster, rounds int, out *result) error {
	live, err := c.deploy(ctx, 3, lab.Set("webhooks.poddefault.guard", "Backstop"))
	if err != nil {
		return err
	}
	if err := awaitBackstop(ctx, live); err != nil {
		return err
	}
	for round := range rounds {
		names := []string{fmt.Sprintf("deleted-%d", round), fmt.Sprintf("changed-%d", round)}
		objects := make([]*v1alpha1.PodDefault, len(names))
		for i, name := range names {
			objects[i] = &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
			objects[i].Spec.Selector.MatchLabels = map[string]string{"gone": name}
			objects[i].Spec.Env = []corev1.EnvVar{{Name: "GONE", Value: name}}
			if err := c.objects.Create(ctx, objects[i]); err != nil {
				return err
			}
		}
		if err := c.awaitIndexed(ctx, typicalPodDefaults+len(names)+round); err != nil {
			return err
		}
		leader, err := leaderOf(ctx, live)
		if err != nil {
			return err
		}
		leader.Kill()
		removed, err := c.removeEndpoint(ctx, leader)
		if err != nil {
			return err
		}
		if err := c.objects.Delete(ctx, objects[0]); err != nil {
			return err
		}
		objects[1].Spec.Selector.MatchLabels["gone"] = "other"
		if err := c.objects.Update(ctx, objects[1]); err != nil {
			return err
		}
		if !lab.Sleep(ctx, time.Until(removed.Add(propagation))) {
			return ctx.Err()
		}
		if err := c.createSelected(ctx, names, out); err != nil {
			return err
		}
		live = slices.DeleteFunc(live, func(r *replica) bool { return r == leader })
		next, err := c.startReady(ctx, lab.Set("webhooks.poddefault.guard", "Backstop"))
		if err != nil {
			return err
		}
		if err := c.addEndpoint(ctx, next); err != nil {
			return err
		}
		live = append(live, next)
	}
	return c.withdraw(ctx, live)
}

// leaderOf is the replica that writes the indexes.
func leaderOf(ctx context.Context, live []*replica) (leader *replica, err error) {
	err = lab.Await(ctx, time.Minute, "a leader", func(ctx context.Context) error {
		for _, r := range live {
			value, err := r.metric(ctx, "sallyport_poddefault_indexes")
			if err != nil {
				return err
			}
			if value > 0 {
				leader = r
				return nil
			}
		}
		return errors.New("no replica writes indexes")
	})
	return leader, err
}

// awaitIndexed returns when the index of the row's namespace lists so many objects.
func (c *cluster) awaitIndexed(ctx context.Context, objects int) error {
	return lab.Await(ctx, time.Minute, "the index", func(ctx context.Context) error {
		index, err := c.clients.CoreV1().PodTemplates(c.namespace).Get(ctx, backstop.TemplateName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := index.Annotations[backstop.ObjectsAnnotation]; got != fmt.Sprint(objects) {
			return fmt.Errorf("it lists %s objects, not %d", got, objects)
		}
		return nil
	})
}

// createSelected creates pods that the PodDefaults have selected, in dry runs, for longer
// than it takes until another replica leads.
func (c *cluster) createSelected(ctx context.Context, names []string, out *result) error {
	const lasts, interval = 20 * time.Second, 50 * time.Millisecond
	var failures []attempt
	began := time.Now()
	n := 0
	for ; time.Since(began) < lasts; n++ {
		pod := newPod(fmt.Sprintf("gone-%d-%d", began.UnixNano(), n), n, typicalPodDefaults)
		pod.Labels["gone"] = names[n%len(names)]
		start := time.Now()
		_, err := c.clients.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			failures = append(failures, attempt{start, time.Now(), err})
		}
		if !lab.Sleep(ctx, interval) {
			return ctx.Err()
		}
	}
	out.Creates += n
	out.Failed += len(failures)
	out.CreateSeconds += time.Since(began).Seconds()
	out.requireNoFailure(failures, " that nothing selects now")
	return nil
}
