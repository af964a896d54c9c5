// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/a-h/templ"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
)

const (
	// clustersAtOnce is how many clusters are read side by side.
	clustersAtOnce = 4
	// clusterPatience is how long one may take, so that one that is down does not hold up the page.
	clusterPatience = 10 * time.Second
)

// A clusterState is what doctor says of a cluster.
type clusterState struct {
	Cluster string         `json:"cluster"`
	Error   string         `json:"error,omitempty"`
	Report  *doctor.Report `json:"report,omitempty"`
}

// showClusters shows what doctor says of each cluster of the kubeconfig. They are read side by side.
func showClusters(ctx context.Context, v *visit) (templ.Component, error) {
	b := block{
		heading: "Clusters", columns: []string{"Cluster", "Checks", "To do first"},
		text:  "The clusters of your kubeconfig, read side by side. Choose one for its pages.",
		empty: "This console reads one cluster. With a kubeconfig that has several, 'sallyport console' shows all.",
	}
	var states []clusterState
	if v.several() {
		states = v.eachCluster(ctx)
		v.data = states
	}
	for _, s := range states {
		name := piece{text: s.Cluster, href: v.link("", "cluster", s.Cluster)}
		if s.Report == nil {
			b.rows = append(b.rows, []cell{{name}, {badge("fix", "not read")}, {{text: s.Error}}})
			continue
		}
		checks, first := cell{{text: summary(s.Report, statusOrder)}}, cell{{class: "quiet", text: "nothing"}}
		if d := firstToDo(s.Report); d != nil {
			checks = append(checks, badge(statusClasses[d.Status], statusWords[d.Status]))
			first = cell{{text: d.Check + ": " + d.Text}, {class: "quiet", text: d.Remedy}}
		}
		b.rows = append(b.rows, []cell{{name}, checks, first})
	}
	return blocks(v, []block{b}), nil
}

// several reports whether the user can choose between clusters.
func (v *visit) several() bool { return len(v.Clusters) > 1 && v.user == "" }

// eachCluster asks doctor about each cluster.
func (v *visit) eachCluster(ctx context.Context) []clusterState {
	states := make([]clusterState, len(v.Clusters))
	var group errgroup.Group
	group.SetLimit(clustersAtOnce)
	for i, name := range v.Clusters {
		group.Go(func() error {
			report, err := v.diagnoseCluster(ctx, name)
			if states[i] = (clusterState{Cluster: name, Report: report}); err != nil {
				states[i].Error = explain(err).Text
			}
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	return states
}

func (v *visit) diagnoseCluster(ctx context.Context, name string) (*doctor.Report, error) {
	config, _, err := v.Connect(name)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = clusterPatience // not all of client-go ends with a context
	patient, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	options := v.Doctor
	options.Window = 0
	report, err := doctor.Run(patient, config, options)
	if errors.Is(patient.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("it was not read within %s", clusterPatience)
	}
	return report, err
}

// firstToDo is the check to look at first, or nil if all are well.
func firstToDo(report *doctor.Report) *doctor.Diagnosis {
	found := slices.MinFunc(append(report.Checks, doctor.Diagnosis{Status: doctor.Skipped}), func(a, b doctor.Diagnosis) int {
		return cmp.Compare(slices.Index(statusOrder, a.Status), slices.Index(statusOrder, b.Status))
	})
	if slices.Index(statusOrder, found.Status) >= slices.Index(statusOrder, doctor.OK) {
		return nil
	}
	return &found
}
