// SPDX-License-Identifier: Apache-2.0

// Package clusters asks doctor about several clusters side by side. One that is slow or down does not hold up the
// others.
package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
)

const (
	// atOnce is how many clusters are read side by side.
	atOnce = 4
	// Patience is how long one may take.
	Patience = 10 * time.Second
)

// Order are the outcomes of checks, worst first.
var Order = []doctor.Status{doctor.Fix, doctor.Unknown, doctor.Note, doctor.OK, doctor.Skipped}

// Words are the outcomes of checks for people.
var Words = map[doctor.Status]string{doctor.OK: "ok", doctor.Fix: "to fix", doctor.Unknown: "unknown", doctor.Note: "to look at", doctor.Skipped: "not checked"}

// A State is what doctor says of a cluster.
type State struct {
	Cluster string `json:"cluster"`
	// Error is why the cluster could not be read.
	Error  string         `json:"error,omitempty"`
	Report *doctor.Report `json:"report,omitempty"`
}

// Read asks doctor about each cluster. Connect returns the configuration of one.
func Read(ctx context.Context, names []string, connect func(name string) (*rest.Config, string, error), options doctor.Options) []State {
	states := make([]State, len(names))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, name := range names {
		group.Go(func() error {
			report, err := read(ctx, name, connect, options)
			if states[i] = (State{Cluster: name, Report: report}); err != nil {
				states[i].Error = err.Error()
			}
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	return states
}

func read(ctx context.Context, name string, connect func(name string) (*rest.Config, string, error), options doctor.Options) (*doctor.Report, error) {
	config, _, err := connect(name)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = Patience + time.Second // not all of client-go ends with a context; what does says that it was too slow
	patient, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	options.Window = 0 // nobody waits for further failures
	report, err := doctor.Run(patient, config, options)
	if errors.Is(patient.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("it was not read within %s", Patience)
	}
	return report, err
}

// First is the check to look at first, or nil if all are well or could not be made.
func (s *State) First() *doctor.Diagnosis {
	if s.Report == nil || len(s.Report.Checks) == 0 {
		return nil
	}
	first := slices.MinFunc(s.Report.Checks, func(a, b doctor.Diagnosis) int {
		return cmp.Compare(slices.Index(Order, a.Status), slices.Index(Order, b.Status))
	})
	if slices.Index(Order, first.Status) >= slices.Index(Order, doctor.OK) {
		return nil
	}
	return &first
}

// Summary counts the outcomes.
func Summary(found *doctor.Report) string {
	counts := map[doctor.Status]int{}
	for _, d := range found.Checks {
		counts[d.Status]++
	}
	var out []string
	for _, status := range Order {
		if counts[status] > 0 {
			out = append(out, fmt.Sprintf("%d %s", counts[status], Words[status]))
		}
	}
	return strings.Join(out, ", ")
}
