// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// A target is a server under load.
type target struct {
	*server
	*loader
}

// A trial is a case on a target, with what the rounds have brought so far.
type trial struct {
	benchCase
	target    target
	review    review
	answerLen int

	reviews   int
	rates     []float64 // reviews per second, one each round, and so below
	costs     []float64 // CPU, in microseconds for a review
	ratios    []float64 // to the floor's costs in the same round
	latencies []time.Duration
}

// measureCases puts all cases to all targets in turns. The first target is the
// floor. podDefaults are those of the API server.
func measureCases(ctx context.Context, p schedule, targets []target, cases []benchCase, podDefaults *v1alpha1.PodDefaultList) ([]measurement, error) {
	rows := make([][]*trial, 0, len(cases)) // cases × targets
	for _, c := range cases {
		row := make([]*trial, 0, len(targets))
		for _, t := range targets {
			trial, err := newTrial(ctx, c, t, podDefaults)
			if err == nil {
				err = trial.warmUp(ctx, p.WarmUp)
			}
			if err != nil {
				return nil, t.explain(c, err)
			}
			row = append(row, trial)
		}
		rows = append(rows, row)
	}
	for round := range p.Rounds {
		for _, row := range rows {
			for i := range row {
				t := row[(i+round)%len(row)]
				if err := t.measure(ctx, p.Window); err != nil {
					return nil, t.target.explain(t.benchCase, err)
				}
			}
			floor := row[0].costs[round]
			for _, t := range row {
				t.ratios = append(t.ratios, t.costs[round]/floor)
			}
		}
	}
	var measurements []measurement
	for _, row := range rows {
		for _, t := range row {
			m, err := t.result()
			if err != nil {
				return nil, err
			}
			measurements = append(measurements, m)
		}
	}
	return measurements, nil
}

func (t target) explain(c benchCase, err error) error {
	return fmt.Errorf("%s, case %q: %w; the log of the server ends with:\n%s", t.Name, c.name, err, t.LogTail())
}

// newTrial asks the target once, and refuses to measure an answer that is wrong.
func newTrial(ctx context.Context, c benchCase, t target, podDefaults *v1alpha1.PodDefaultList) (*trial, error) {
	r, err := loadReview(c.review)
	if err != nil {
		return nil, err
	}
	if t.peer != nil {
		c = t.peer.adapt(c)
	}
	edit := c.edit
	if len(c.adds) > 0 {
		if edit, err = c.injection(podDefaults); err != nil {
			return nil, err
		}
	}
	answer, err := t.ask(ctx, c.path, r.body)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Name == floorName:
		err = verifyAllowed(answer)
	case t.peer != nil && t.peer.verify != nil:
		err = t.peer.verify(answer, r)
	case t.peer != nil:
		err = verify(answer, r, edit, t.peer.compare)
	default:
		err = verify(answer, r, edit)
	}
	if err != nil {
		return nil, err
	}
	return &trial{benchCase: c, target: t, review: r, answerLen: len(answer)}, nil
}

// injection is what the PodDefaults of the case do to a pod.
func (c benchCase) injection(podDefaults *v1alpha1.PodDefaultList) (func(pod map[string]any), error) {
	var edits []func(map[string]any)
	for _, name := range c.adds {
		adds := named(podDefaults, name)
		if adds == nil {
			return nil, fmt.Errorf("the API server has no PodDefault %q", name)
		}
		if c.bare {
			adds = adds.DeepCopy()
			adds.ResourceVersion = ""
		}
		edit, err := injection(adds)
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit)
	}
	return func(pod map[string]any) {
		for _, edit := range edits {
			edit(pod)
		}
	}, nil
}

func named(list *v1alpha1.PodDefaultList, name string) *v1alpha1.PodDefault {
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	return nil
}

func (t *trial) warmUp(ctx context.Context, window time.Duration) error {
	_, err := t.target.run(ctx, t.path, t.review.body, t.answerLen, window)
	return err
}

func (t *trial) measure(ctx context.Context, window time.Duration) error {
	before, err := cpuTime(t.target.PID())
	if err != nil {
		return err
	}
	s, err := t.target.run(ctx, t.path, t.review.body, t.answerLen, window)
	if err != nil {
		return err
	}
	after, err := cpuTime(t.target.PID())
	if err != nil {
		return err
	}
	t.reviews += s.reviews
	t.rates = append(t.rates, float64(s.reviews)/s.elapsed.Seconds())
	t.costs = append(t.costs, micros(after-before)/float64(s.reviews))
	t.latencies = append(t.latencies, s.latencies...)
	return nil
}

func (t *trial) result() (measurement, error) {
	rss, err := peakRSS(t.target.PID())
	return measurement{
		Case:             t.id,
		Title:            t.benchCase.name,
		Server:           t.target.Name,
		Reviews:          t.reviews,
		ReviewsPerSecond: median(t.rates),
		P50Micros:        micros(percentile(t.latencies, 50)),
		P99Micros:        micros(percentile(t.latencies, 99)),
		CPUMicros:        median(t.costs),
		RatioToFloor:     median(t.ratios),
		Ratios:           t.ratios,
		PeakRSSMiB:       float64(rss) / (1 << 20),
	}, err
}
