// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// A stage is a state of the API server, with the cases that are measured in it.
// Stages come one after another and add to the state.
type stage struct {
	podDefaults int      // in the namespace
	servers     []string // by name; the floor, the unit of all ratios, is always among them
	cases       []benchCase
	starts      int  // how often sallyport is started for the figure "start to ready"
	creates     bool // whether pods are created through the API server
	volumes     bool // whether persistent volumes are
}

// A benchCase is a review sent to a path over and over. To measure another
// handler, add a recording, and a case with its path and what the answer has to
// add.
type benchCase struct {
	id     string // what the limits call it
	name   string // for people
	review string // name of the recording
	path   string // where the servers serve the handler
	adds   string // name of the PodDefault that has to be injected; empty means no patch at all
	bare   bool   // what it adds is added by the handler itself, so there is no mark of a PodDefault
}

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

func planStages(p plan) ([]stage, error) {
	typical, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	few, injected := len(typical), typical[0].Name
	name := func(pod string, podDefaults int, matches string) string {
		return fmt.Sprintf("%s pod, %s PodDefaults, %s", pod, thousands(podDefaults), matches)
	}
	return []stage{
		{
			podDefaults: few,
			servers:     []string{floorName, neighbourName, sallyportName},
			cases: []benchCase{
				{notebookOneMatch, name("notebook", few, "1 matches"), "notebook-selecting", podDefaultPath, injected, false},
				{notebookNoMatch, name("notebook", few, "none matches"), "notebook", podDefaultPath, "", false},
				{"minimal-one-match", name("minimal", few, "1 matches"), "minimal-selecting", podDefaultPath, injected, false},
				{"minimal-no-match", name("minimal", few, "none matches"), "minimal", podDefaultPath, "", false},
			},
			creates: true,
		},
		{
			podDefaults: few,
			servers:     []string{floorName, neighbourName, libraryName},
			cases: []benchCase{
				{libraryAdd, "notebook pod, typed mutator adds to each container", "notebook", addPath, injected, true},
				{libraryNothing, "notebook pod, typed mutator changes nothing", "notebook", nothingPath, "", false},
				{libraryValidate, "notebook pod, typed validator", "notebook", validatePath, "", false},
			},
		},
		{
			podDefaults: p.Many,
			servers:     []string{floorName, sallyportName},
			cases: []benchCase{
				{notebookManyMatch, name("notebook", p.Many, "1 matches"), "notebook-selecting", podDefaultPath, injected, false},
			},
			starts: p.Starts,
		},
	}, nil
}
