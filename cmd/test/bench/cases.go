// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
)

// A stage is a state of the API server, with the cases that are measured in it.
// Stages come one after another and add to the state.
type stage struct {
	part        string   // of a run; see plan.Only
	podDefaults int      // in the namespace
	servers     []string // by name; the floor, the unit of all ratios, is always among them
	cases       []benchCase
	starts      int    // how often sallyport is started for the figure "start to ready"
	starter     string // the server that is started then
	// prepare adds what else has to be there, nil for nothing.
	prepare func(ctx context.Context, s *site, p schedule, progress progress) error
	creates bool // whether pods are created through the API server
	volumes bool // whether persistent volumes are
	// freshness has pods created with each freshness of PodDefaults, by so many clients.
	freshness []int
	overload  bool // whether pods arrive at a rate; see [overload]
	idle      bool // whether sallyport is looked at when it has nothing to do
	burst     bool // whether pods are created by many writers at once
	exports   bool // whether pods are created with the PodDefaults as policies
	scale     bool // whether starts, a leader and caches are measured; see [scaled]
}

// A benchCase is a review sent to a path over and over. To measure another
// handler, add a recording, and a case with its path and what the answer has to
// add.
type benchCase struct {
	id     string   // what the limits call it
	name   string   // for people
	review string   // name of the recording
	path   string   // where the servers serve the handler
	adds   []string // names of the PodDefaults that have to be injected, in their order; none means no patch at all
	bare   bool     // what it adds is added by the handler itself, so there is no mark of a PodDefault
	// edit makes of the recorded object what the answer has to make of it, if that is no
	// PodDefault's doing.
	edit func(object map[string]any)
}

// The parts of a run, which can be measured alone.
const (
	partCommand     = "command"
	partPodDefaults = "poddefaults"
	partLibrary     = "library"
	partConversion  = "conversion"
	partPolicies    = "policies"
	partDatasets    = "datasets"
	partVolumes     = "volumes"
	partBackstop    = "backstop"
	partExport      = "export"
	partFreshness   = "freshness"
	partOverload    = "overload"
	partSizes       = "sizes"
	partBurst       = "burst"
	partStart       = "start"
	partPeers       = "peers" // which is measured if it is named alone, as the next
	partScale       = "scale"
)

var parts = []string{partCommand, partPodDefaults, partSizes, partBurst, partStart, partLibrary, partConversion, partPolicies, partDatasets, partVolumes, partBackstop, partExport, partFreshness, partOverload, partPeers, partScale}

const (
	floorName     = "floor"
	neighbourName = "controller-runtime"
	sallyportName = "sallyport"
	libraryName   = "library"
)

// Cases the limits refer to.
const (
	notebookOneMatch  = "notebook-one-match"
	notebookNoMatch   = "notebook-no-match"
	notebookManyMatch = "notebook-one-of-many"
	libraryAdd        = "library-add"
	libraryNothing    = "library-nothing"
	libraryValidate   = "library-validate"
)

func planStages(p schedule) ([]stage, error) {
	typical, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	few, injected := len(typical), typical[0].Name
	name := func(pod string, podDefaults int, matches string) string {
		return fmt.Sprintf("%s pod, %s PodDefaults, %s", pod, thousands(podDefaults), matches)
	}
	return slices.Concat(conversionStages, volumeStages, []stage{
		{
			part:        partPodDefaults,
			podDefaults: few,
			servers:     []string{floorName, neighbourName, sallyportName},
			cases: []benchCase{
				{id: notebookOneMatch, name: name("notebook", few, "1 matches"), review: "notebook-selecting", path: podDefaultPath, adds: []string{injected}},
				{id: notebookNoMatch, name: name("notebook", few, "none matches"), review: "notebook", path: podDefaultPath},
				{id: "minimal-one-match", name: name("minimal", few, "1 matches"), review: "minimal-selecting", path: podDefaultPath, adds: []string{injected}},
				{id: "minimal-no-match", name: name("minimal", few, "none matches"), review: "minimal", path: podDefaultPath},
			},
			creates: true,
		},
		{
			part:        partStart,
			podDefaults: few,
			idle:        true,
		},
		sizesStage(few),
		{
			part:        partBurst,
			podDefaults: few,
			servers:     []string{floorName, sallyportName},
			cases:       []benchCase{{id: "burst", name: "burst", review: "notebook-selecting", path: podDefaultPath, adds: []string{injected}}},
			burst:       true,
		},
		{
			part:        partLibrary,
			podDefaults: few, // the mutator adds what the first of them says
			servers:     []string{floorName, neighbourName, libraryName},
			cases: []benchCase{
				{id: libraryAdd, name: "notebook pod, typed mutator adds to each container", review: "notebook", path: addPath, adds: []string{injected}, bare: true},
				{id: libraryNothing, name: "notebook pod, typed mutator changes nothing", review: "notebook", path: nothingPath},
				{id: libraryValidate, name: "notebook pod, typed validator", review: "notebook", path: validatePath},
			},
		},
		{
			part:        partExport,
			podDefaults: few,
			servers:     []string{sallyportName},
			exports:     true,
		},
		policyStage(few),
		usageStage(few, injected),
		rolloutStage(few),
		overloadStage(few),
	}, freshnessStages(p), []stage{
		{
			part:        partStart,
			podDefaults: p.Many,
			starts:      p.Starts, starter: sallyportName,
		},
		{
			part:        partPodDefaults,
			podDefaults: p.Many,
			servers:     []string{floorName, sallyportName},
			cases: []benchCase{
				{id: notebookManyMatch, name: name("notebook", p.Many, "1 matches"), review: "notebook-selecting", path: podDefaultPath, adds: []string{injected}},
			},
		},
		datasetStage(p, few),
		scaleStage(injected),
	}, peerStages(p, few, injected)), nil
}
