// SPDX-License-Identifier: Apache-2.0

package drift

import "github.com/prometheus/client_golang/prometheus"

// mostSeries limits the time series: PodDefaults come and go, and their authors must not
// exhaust memory. Beyond it, objects are counted together under an empty name and
// namespace, as deleted ones are.
const mostSeries = 5000

var podsDesc = prometheus.NewDesc("sallyport_poddefault_pods",
	"Running pods by PodDefault (cluster/NAME for a ClusterPodDefault; empty for deleted ones) and state: current, outdated, unknown, missing, surplus or exempt; undecided, without a PodDefault, if such a pod would be refused now. Absent if another replica leads.",
	[]string{"namespace", "poddefault", "state"}, nil)

// A collector shows the board's report.
type collector struct{ board *Board }

// Describe implements [prometheus.Collector].
func (collector) Describe(to chan<- *prometheus.Desc) { to <- podsDesc }

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	r := c.board.Report()
	if r == nil {
		return
	}
	series, others := 0, map[State]int{"undecided": r.Undecided}
	for _, counts := range r.Objects() {
		for _, state := range States() {
			n := counts.Pods[state]
			switch {
			case n == 0:
			case counts.Object == nil || series == mostSeries:
				others[state] += n
			default:
				series++
				to <- prometheus.MustNewConstMetric(podsDesc, prometheus.GaugeValue, float64(n), counts.Object.Namespace(), counts.Object.Decision(), string(state))
			}
		}
	}
	for state, n := range others {
		to <- prometheus.MustNewConstMetric(podsDesc, prometheus.GaugeValue, float64(n), "", "", string(state))
	}
}
