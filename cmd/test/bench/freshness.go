// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// Sallyport with each freshness of PodDefaults.
const (
	cachedName     = "cached"
	consistentName = "consistent"
)

// crowd is how many clients create pods where the figure has a limit. Freshness Consistent
// costs time more than work: an API server with a watch cache finds out whether the cache
// of a kind that nobody writes is up to date ten times a second at most, so that while
// other kinds are written a list takes up to 100 ms, and a few clients that wait for each
// answer make few pods whatever else is idle. Controllers create many at a time.
const crowd = 128

// A freshness is pods created through the API server while a namespace holds a number of
// PodDefaults, and the server takes those that it knows or asks for what is new.
type freshness struct {
	PodDefaults int `json:"podDefaults"`
	Clients     int `json:"clients"`
	creation
}

// freshnessStages are one for each number of PodDefaults, in ascending order.
func freshnessStages(p schedule) []stage {
	var stages []stage
	for i, podDefaults := range p.Fresh {
		clients := []int{crowd}
		if i == 0 {
			clients = []int{creators, crowd}
		}
		stages = append(stages, stage{
			part: partFreshness, podDefaults: podDefaults, servers: []string{cachedName, consistentName}, freshness: clients,
		})
	}
	return stages
}

// measureFreshness creates notebook pods that one PodDefault selects. Turns alternate.
func measureFreshness(ctx context.Context, p schedule, site *site, targets []target, stage stage) ([]freshness, error) {
	typical, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	var rows []freshness
	for _, clients := range stage.freshness {
		creations, err := measureCreations(ctx, p, site, targets, benchCase{path: podDefaultPath, adds: []string{typical[0].Name}}, p.Creates, clients)
		if err != nil {
			return nil, err
		}
		for _, c := range creations {
			if c.Server != "" { // without a webhook it is what the first table says
				rows = append(rows, freshness{stage.podDefaults, clients, c})
			}
		}
	}
	return rows, nil
}

// freshnessCost is how many times faster a crowd creates pods with what the server knows
// than with what is new, at the smallest number of PodDefaults.
func freshnessCost(r *results) (float64, bool) {
	rates := map[string]float64{}
	for _, row := range r.Freshness {
		if row.PodDefaults == r.Freshness[0].PodDefaults && row.Clients == crowd {
			rates[row.Server] = row.CreatesPerSecond
		}
	}
	cached, consistent := rates[cachedName], rates[consistentName]
	if cached == 0 || consistent == 0 {
		return 0, false
	}
	return cached / consistent, true
}
