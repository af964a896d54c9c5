// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"fmt"
	"strings"
)

// Reason is why a pod's node affinity has a term.
type Reason struct {
	// Plugin is the one that wants it.
	Plugin string
	// Dataset is for whose sake, "namespace/name"; empty if it is for that of all others.
	Dataset string
	// Weight is 0 for what is required.
	Weight int
	// Why says in words what nodes are wanted. If it is about a label, Key is that label.
	Why, Key string

	wanted alternatives
	one    []requirement // if there are no alternatives
}

// lists are the alternatives.
func (r *Reason) lists() alternatives {
	if r.one != nil {
		return alternatives{r.one}
	}
	return r.wanted
}

// Source is the reason in one line, for people.
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

// Term names the labels that the reason is about: "fluid.io/s-team-a-imagenet".
func (r Reason) Term() string {
	wanted := r.lists()
	if len(wanted) == 1 {
		return keys(wanted[0])
	}
	lists := make([]string, len(wanted))
	for i, list := range wanted {
		lists[i] = keys(list)
	}
	return strings.Join(lists, " or ")
}

// Meets tells whether a node with the labels is one that the reason is for.
func (r Reason) Meets(node map[string]string) bool {
	for _, list := range r.lists() {
		t := term{expressions: list}
		if t.meets(node) {
			return true
		}
	}
	return false
}

func (r Reason) asksFor(wanted *requirement) bool {
	for _, list := range r.lists() {
		t := term{expressions: list}
		if t.has(wanted) {
			return true
		}
	}
	return false
}
