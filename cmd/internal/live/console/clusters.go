// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/clusters"
)

// showClusters shows what doctor says of each cluster of the kubeconfig.
func showClusters(ctx context.Context, v *visit) (templ.Component, error) {
	b := block{
		heading: "Clusters", columns: []string{"Cluster", "Checks", "To do first"},
		text:  "The clusters of your kubeconfig, read side by side. Choose one for its pages.",
		empty: "This console reads one cluster. With a kubeconfig that has several, 'sallyport console' shows all.",
	}
	if !several(v) {
		return blocks(v, []block{b}), nil
	}
	states := clusters.Read(ctx, v.Clusters, v.Connect, v.Doctor)
	v.data = states
	for i := range states {
		s := &states[i]
		name := piece{text: s.Cluster, href: v.link("", "cluster", s.Cluster)}
		if s.Report == nil {
			b.rows = append(b.rows, []cell{{name}, {badge("fix", "not read")}, text(s.Error)})
			continue
		}
		checks, first := text(clusters.Summary(s.Report)), cell{{class: "quiet", text: "nothing"}}
		if d := s.First(); d != nil {
			checks = append(checks, badge(statusClasses[d.Status], clusters.Words[d.Status]))
			first = cell{{text: d.Check + ": " + d.Text}, {class: "quiet", text: d.Remedy}}
		}
		b.rows = append(b.rows, []cell{{name}, checks, first})
	}
	return blocks(v, []block{b}), nil
}

// several reports whether the user can choose between clusters.
func several(v *visit) bool { return len(v.Clusters) > 1 && v.user == "" }
