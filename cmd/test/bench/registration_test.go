// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestSumMetric(t *testing.T) {
	const metrics = `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{code="200",name="a.example.com"} 3
calls_total{code="500",name="a.example.com"} 1e+02
calls_total{code="200",name="b.example.com"} 5
calls_total_created{code="200",name="a.example.com"} 7
`
	tests := map[string]struct {
		label string
		want  int
	}{
		"all codes of a name are added": {`name="a.example.com"`, 103},
		"another name is another sum":   {`name="b.example.com"`, 5},
		"an unknown name was not seen":  {`name="c.example.com"`, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sumMetric([]byte(metrics), "calls_total", test.label)
			if err != nil || got != test.want {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
		})
	}
	if _, err := sumMetric([]byte(`calls_total{name="a"} many`), "calls_total", `"a"`); err == nil {
		t.Error("a value that is not a number passes")
	}
}
