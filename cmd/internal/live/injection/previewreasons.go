// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"io"
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// maxReasons limits the workloads of which a preview says why an object is not applied to their pods, and the remarks about a pod.
const maxReasons = 10

// A Previewed says to the pods of how many workloads an object would be applied, and why not to those of others.
type Previewed struct {
	// Object is its kind, namespace and name.
	Object string
	// Applied counts workloads.
	Applied int
	// NotApplied are those that it selects, or else those that it does not, if it is applied to none; at most ten. More counts the others.
	NotApplied []NotApplied
	More       int

	unselected []NotApplied // the first; others counts the rest
	others     int
}

// A NotApplied is a workload to whose pods an object would not be applied.
type NotApplied struct {
	Workload *manifest.Object
	// Reason has no values of PodDefaults.
	Reason string
}

// decided adds what became of the given objects, as far as they are among those after the change.
func (e *Effect) decided(of *manifest.Object, given []*Default, after *Defaults, out *review.Outcome) {
	for _, d := range given {
		if slices.ContainsFunc(after.All, func(x *Default) bool { return same(x, d) }) {
			e.previewed(d.Plan.String()).add(of, d, out.PodDefaults.Of(d.Plan), out.Denied != nil)
		}
	}
}

func (e *Effect) previewed(object string) *Previewed {
	for _, p := range e.Objects {
		if p.Object == object {
			return p
		}
	}
	p := &Previewed{Object: object}
	e.Objects = append(e.Objects, p)
	return p
}

func (p *Previewed) add(of *manifest.Object, d *Default, r match.Reason, denied bool) {
	keep := func(list *[]NotApplied, others *int) {
		if len(*list) < maxReasons {
			*list = append(*list, NotApplied{Workload: of, Reason: d.WhyNot(r, denied)})
		} else {
			*others++
		}
	}
	switch {
	case r.Why == match.Applied && !denied:
		p.Applied++
	case r.Why == match.NotSelected || r.Why == match.NotCalled:
		keep(&p.unselected, &p.others)
	default:
		keep(&p.NotApplied, &p.More)
	}
}

// end chooses the reasons that are told, when all workloads are known.
func (p *Previewed) end() {
	if p.Applied == 0 && len(p.NotApplied) == 0 {
		p.NotApplied, p.More = p.unselected, p.others
	}
}

func (p *Previewed) print(out io.Writer) error {
	if len(p.NotApplied) == 0 {
		return nil
	}
	how := "would be applied to no pod of a workload"
	if p.Applied > 0 {
		how = fmt.Sprintf("would be applied to the pods of %d of them, and not to those of", p.Applied)
	}
	text := manifest.Sprintf("%s %s:\n", p.Object, how)
	for _, n := range p.NotApplied {
		text += manifest.Sprintf("  %s: %s\n", n.Workload.Title(), n.Reason)
	}
	if p.More > 0 {
		text += fmt.Sprintf("  and %d more\n", p.More)
	}
	_, err := io.WriteString(out, text)
	return err
}
