// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestTheDemosOnARealAPIServer runs `make demo` and `make demo-cloud`: their own checks decide.
func TestTheDemosOnARealAPIServer(t *testing.T) {
	commands := lab.Commands(t, "cmd/sallyport", "examples/cloud-controller-manager")
	sallyport, cloud := commands["sallyport"], commands["cloud-controller-manager"]
	t.Chdir("../..") // where make runs them
	for name, d := range map[string]*demo{
		"demo":       {command: sallyport},
		"demo-cloud": {command: cloud},
	} {
		t.Run(name, func(t *testing.T) {
			var shown strings.Builder
			d.screen = &screen{out: &shown}
			d.show = d.steps
			if d.command == cloud {
				d.show = d.cloudSteps
			}
			if err := d.run(t.Context()); err != nil {
				t.Errorf("%v in\n%s", err, shown.String())
			}
		})
	}
}
