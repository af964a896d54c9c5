// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/share"
)

// maxSeries limits the time series: PodDefaults come and go, and their authors must not
// exhaust memory. If they are too many, the namespaces with the most of them yield: their other objects
// are counted together under an empty name. Deleted ones have no namespace either.
const maxSeries = 5000

var podsDesc = prometheus.NewDesc("sallyport_poddefault_pods",
	"Running pods by PodDefault (cluster/NAME for a ClusterPodDefault; empty for deleted ones) and state: current, outdated, unknown, missing, missed, surplus or exempt; undecided, without a PodDefault, if such a pod would be refused now. Absent if another replica leads.",
	[]string{"namespace", "poddefault", "state"}, nil)

// A collector shows the board's report.
type collector struct{ board *Board }

// Describe implements [prometheus.Collector].
func (collector) Describe(to chan<- *prometheus.Desc) { to <- podsDesc }

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	if r := c.board.Report(); r != nil {
		r.collect(to)
	}
}

func (r *Report) collect(to chan<- prometheus.Metric) {
	type of struct {
		namespace string
		state     State
	}
	objects, wanted := r.Objects(), map[string]int{}
	for _, counts := range objects {
		if counts.Object == nil {
			continue
		}
		for _, n := range counts.Pods {
			if n > 0 {
				wanted[counts.Object.Namespace()]++
			}
		}
	}
	limit := share.Limit(maxSeries, slices.Collect(maps.Values(wanted)))
	named, others := map[string]int{}, map[of]int{{state: "undecided"}: r.Undecided}
	for _, counts := range objects {
		for _, state := range States() {
			n, namespace := counts.Pods[state], ""
			if counts.Object != nil {
				namespace = counts.Object.Namespace()
			}
			switch {
			case n == 0:
			case counts.Object == nil || named[namespace] >= limit:
				others[of{namespace, state}] += n
			default:
				named[namespace]++
				to <- prometheus.MustNewConstMetric(podsDesc, prometheus.GaugeValue, float64(n), namespace, counts.Object.Decision(), string(state))
			}
		}
	}
	for other, n := range others {
		to <- prometheus.MustNewConstMetric(podsDesc, prometheus.GaugeValue, float64(n), other.namespace, "", string(other.state))
	}
}
