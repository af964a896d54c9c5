// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"fmt"
	"strings"

	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// Reason is why a pod's node affinity has a term.
type Reason struct {
	// Plugin is the plugin that wants it.
	Plugin string
	// Dataset is the "namespace/name" of the Dataset, or "" if it is for all others.
	Dataset string
	// Weight is 0 for requirements.
	Weight int
	// Why describes the wanted nodes. Key is the label that it mentions, if any.
	Why, Key string

	// Wanted are the requirements of which a node must meet one list, One the only list if there are no alternatives.
	Wanted nodeterms.Alternatives
	One    []nodeterms.Requirement
}

// lists returns the alternatives.
func (r *Reason) lists() nodeterms.Alternatives {
	if r.One != nil {
		return nodeterms.Alternatives{r.One}
	}
	return r.Wanted
}

// Source returns the reason in one line, for messages.
func (r Reason) Source() string {
	var out strings.Builder
	if r.Dataset != "" {
		out.WriteString("dataset " + r.Dataset + ": ")
	}
	out.WriteString(r.Plugin + ": " + r.Why)
	if r.Key != "" {
		out.WriteString(" by " + r.Key)
	}
	if r.Weight > 0 {
		fmt.Fprintf(&out, " (weight %d)", r.Weight)
	}
	return out.String()
}

// Term names the labels of the reason: "fluid.io/s-team-a-imagenet".
func (r Reason) Term() string {
	wanted := r.lists()
	if len(wanted) == 1 {
		return nodeterms.Keys(wanted[0])
	}
	lists := make([]string, len(wanted))
	for i, list := range wanted {
		lists[i] = nodeterms.Keys(list)
	}
	return strings.Join(lists, " or ")
}

// Meets reports whether a node with these labels meets the reason.
func (r Reason) Meets(node map[string]string) bool {
	for _, list := range r.lists() {
		t := nodeterms.Term{Expressions: list}
		if t.Meets(node) {
			return true
		}
	}
	return false
}

func (r Reason) asksFor(wanted *nodeterms.Requirement) bool {
	for _, list := range r.lists() {
		t := nodeterms.Term{Expressions: list}
		if t.Has(wanted) {
			return true
		}
	}
	return false
}
