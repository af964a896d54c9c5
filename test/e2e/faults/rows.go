// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A row is a fault, how often it is made, and what may come of it.
type row struct {
	name, what  string
	allowed     string // what may be lost, as the table says it
	rounds      int
	shortRounds int // 0: not in the short run
	run         func(ctx context.Context, l *lab, rounds int, out *result) error
}

const (
	nothing     = "nothing"
	noneStored  = "failures; none stored un-injected"
	beforeItsGo = "what was sent before its endpoint went; none stored un-injected"
)

// rows are all rows, in the order of the table.
var rows = []row{
	{"rolling-restart", "rolling restart of 3 replicas", nothing, 50, 1, rollingRestart},
}

// chooseRows returns the rows of those names, or all that belong to the run.
func chooseRows(names []string, short bool) ([]row, error) {
	var chosen []row
	for _, r := range rows {
		switch {
		case len(names) > 0 && slices.Contains(names, r.name),
			len(names) == 0 && (!short || r.shortRounds > 0):
			r.shortRounds = max(r.shortRounds, 1)
			chosen = append(chosen, r)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
			return nil, fmt.Errorf("there is no row %q; choose from %s", name, strings.Join(rowNames(), ", "))
		}
	}
	return chosen, nil
}

func rowNames() []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return names
}
