// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"strings"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/inforce"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
)

// showExemptions shows what is exempt from PodDefaults, and until when.
func showExemptions(ctx context.Context, v *visit) (templ.Component, error) {
	found, err := inAll(v, "list exemptions of all namespaces; those of "+v.cluster.Namespace+" are shown", func(namespace string) ([]carried.DriftExemption, error) {
		return inforce.Find(ctx, v.cluster, namespace, &v.notes)
	})
	if errors.Is(err, injection.ErrNoPodDefaults) {
		v.notes.WriteString("note: " + err.Error() + "\n")
		err = nil
	}
	if err = v.hide("read exemptions of the namespace "+v.cluster.Namespace, err); err != nil {
		return nil, err
	}
	b := block{
		heading: "In force", columns: []string{"Namespace", "Workload", "Exempt from", "Until", "Reason", "Pods"},
		text:  "Pods of these workloads are created without these PodDefaults until the time ends.",
		empty: "Nothing is exempt that you may read. An Exemption is an object: docs/poddefault-operations.md says who may write one.",
	}
	if found != nil {
		v.data = found
		for _, e := range found {
			until := cell{{text: e.Until.UTC().Format(timeFormat)}}
			if endsSoon(e.Until) {
				until = append(until, badge("note", "ends within 7 days"))
			}
			workload := strings.Join(e.Workloads, ", ")
			if workload == "*" {
				workload = "all"
			}
			b.rows = append(b.rows, []cell{
				{{text: e.Namespace, href: v.link("poddefaults", "namespace", e.Namespace)}}, text(workload), text(strings.Join(e.Objects, ", ")), until, text(e.Reason), number(e.Pods),
			})
		}
	}
	return blocks(v, []block{b}), nil
}
