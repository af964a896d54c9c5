// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// finding identifies a finding wherever its file and line are.
type finding struct{ rule, object, webhook, message string }

func identify(f lint.Finding) finding { return finding{f.Rule, f.Object, f.Webhook, f.Message} }

// Baseline has the findings of an earlier run, which are not reported again.
type Baseline struct {
	file  string
	known map[finding]int
}

// ReadBaseline reads what lint has printed with --output json.
func ReadBaseline(file string) (*Baseline, error) {
	data, err := os.ReadFile(file) // the user names it
	if err != nil {
		return nil, err
	}
	var printed struct {
		Findings []lint.Finding `json:"findings"`
	}
	if err := json.Unmarshal(data, &printed); err != nil || printed.Findings == nil {
		return nil, fmt.Errorf("%s is not a baseline: write one with --output json", file)
	}
	b := &Baseline{file: file, known: map[finding]int{}}
	for _, f := range printed.Findings {
		b.known[identify(f)]++
	}
	return b, nil
}

// Subtract removes the findings of a baseline, and leaves as many more as there are.
func (r *Result) Subtract(b *Baseline) {
	left := map[finding]int{}
	for f, n := range b.known {
		left[f] = n
	}
	var fresh []lint.Finding
	for _, f := range r.report.Findings {
		if left[identify(f)] > 0 {
			left[identify(f)]--
			r.known++
			continue
		}
		fresh = append(fresh, f)
	}
	r.report.Findings = fresh
	for _, n := range left {
		r.gone += n
	}
	r.baseline = b.file
}

// ofBaseline says what the baseline has hidden, for the summary.
func (r *Result) ofBaseline() string {
	if r.baseline == "" {
		return ""
	}
	text := fmt.Sprintf("; %d of the baseline", r.known)
	if r.gone > 0 {
		text += fmt.Sprintf(", in which %s no longer there: write it anew", cli.Count(r.gone, "finding is", "findings are"))
	}
	return text
}
