// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

// results are all that a run has measured.
type results struct {
	Machine         machine           `json:"machine"`
	Quick           bool              `json:"quick"` // too short to conclude anything
	Reviews         []measurement     `json:"reviews"`
	Peers           map[string]string `json:"peers,omitempty"`                 // versions of the modules, by name
	ColdStartMillis float64           `json:"coldStartMilliseconds,omitempty"` // of the command, to print its version
	StartSeconds    float64           `json:"startSeconds"`                    // sallyport, from start to ready, in the stage that asks for it
	Starts          []float64         `json:"starts,omitempty"`                // what StartSeconds is the median of
	StartPeakRSSMiB float64           `json:"startPeakRSSMiB,omitempty"`       // the largest of these starts
	// StartPeakAnonymousMiB is the part of it that is not a file, see IdleAnonymousMiB.
	StartPeakAnonymousMiB float64 `json:"startPeakAnonymousMiB,omitempty"`
	IdleRSSMiB            float64 `json:"idleRSSMiB,omitempty"` // sallyport with the typical PodDefaults, some seconds after its start
	// IdleAnonymousMiB is the part of it that is not a file: the rest are pages of the binary. The
	// kernel maps those around each page that is used, as many as it has in its cache, and may
	// take any away; the working set of a container, which kubectl top prints, has few of them.
	IdleAnonymousMiB float64 `json:"idleAnonymousMiB,omitempty"`
	// DatasetStartSeconds is the same with Datasets and claims.
	DatasetStartSeconds float64     `json:"datasetStartSeconds,omitempty"`
	Creations           []creation  `json:"creations"`
	Burst               []creation  `json:"burst,omitempty"`   // as Creations, by many writers
	Volumes             []creation  `json:"volumes,omitempty"` // as Creations, of persistent volumes
	Freshness           []freshness `json:"freshness,omitempty"`
	Overload            []overload  `json:"overload,omitempty"`
	Listings            []listing   `json:"listings"`
	Exported            []creation  `json:"exported,omitempty"` // as Creations, with the PodDefaults as policies
	Scale               *scaled     `json:"scale,omitempty"`
	Backstop            []creation  `json:"backstop,omitempty"` // pods that a policy looks up; the servers are what is in force
}

// machine says what the absolute figures stand for.
type machine struct {
	CPUs       int    `json:"cpus"`
	OS         string `json:"os"`
	Go         string `json:"go"`
	APIServer  string `json:"apiServer"`
	Rounds     int    `json:"rounds"`
	WindowMS   int64  `json:"windowMilliseconds"`
	ReviewSize sizes  `json:"reviewBytes"`
}

type sizes map[string]int // by name of the recording

// A measurement is of one case on one server. Rates and costs are medians of
// the rounds, latencies are over all rounds.
type measurement struct {
	Case             string    `json:"case"`
	Title            string    `json:"title"`
	Server           string    `json:"server"`
	Reviews          int       `json:"reviews"`
	ReviewsPerSecond float64   `json:"reviewsPerSecond"`
	P50Micros        float64   `json:"p50Microseconds"`
	P99Micros        float64   `json:"p99Microseconds"`
	CPUMicros        float64   `json:"cpuMicrosecondsPerReview"`
	RatioToFloor     float64   `json:"ratioToFloor"`
	Ratios           []float64 `json:"ratios,omitempty"` // one of each round, of which RatioToFloor is the median
	PeakRSSMiB       float64   `json:"peakRSSMiB"`       // of the server since its start, in the stage
}

// A creation is pods created through the API server with one server registered.
type creation struct {
	Server           string    `json:"server"` // empty: no webhook
	Protocol         string    `json:"protocol,omitempty"`
	Pods             int       `json:"pods"` // or volumes
	CreatesPerSecond float64   `json:"createsPerSecond"`
	P50Millis        float64   `json:"p50Milliseconds"`
	P99Millis        float64   `json:"p99Milliseconds"`
	Rates            []float64 `json:"rates,omitempty"` // one of each turn, of which CreatesPerSecond is the median
}

func (r *results) listing(server string) (listing, bool) {
	for _, l := range r.Listings {
		if l.Server == server {
			return l, true
		}
	}
	return listing{}, false
}

func (r *results) find(caseID, server string) (measurement, bool) {
	for _, m := range r.Reviews {
		if m.Case == caseID && m.Server == server {
			return m, true
		}
	}
	return measurement{}, false
}

// median of an even number of values is the mean of the two in the middle; of
// none it is 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// percentile is the smallest duration that p percent do not exceed (nearest
// rank). It sorts its argument; of none it is 0.
func percentile(durations []time.Duration, p float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	rank := int(math.Ceil(p / 100 * float64(len(durations))))
	return durations[max(rank, 1)-1]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
