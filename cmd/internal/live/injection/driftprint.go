// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// PrintText prints tables: of objects, of drifted workloads, and of exemptions.
func (d *Drift) PrintText(out io.Writer) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	if len(d.PodDefaults) > 0 {
		fmt.Fprint(w, "PODDEFAULT\tREVISION")
		for _, state := range drift.States() {
			fmt.Fprint(w, "\t", strings.ToUpper(string(state)))
		}
		fmt.Fprintln(w)
	}
	for _, of := range d.PodDefaults {
		revision := cmp.Or(of.Revision, "-")
		if !of.Exists {
			revision = "deleted"
		}
		fmt.Fprint(w, manifest.PrintableLine(of.Name), "\t", manifest.PrintableLine(revision))
		for _, state := range drift.States() {
			fmt.Fprint(w, "\t", of.Pods[state])
		}
		fmt.Fprintln(w)
	}
	if len(d.Workloads) > 0 {
		fmt.Fprintln(w, "\nNAMESPACE\tWORKLOAD\tPODS\tDIFFERENCE")
	}
	for i := range d.Workloads {
		of := &d.Workloads[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", of.Namespace, manifest.PrintableLine(of.Title()), of.Pods, manifest.PrintableLine(of.difference()))
	}
	if len(d.Exemptions) > 0 {
		fmt.Fprintln(w, "\nNAMESPACE\tEXEMPTION\tWORKLOADS\tPODS\tUNTIL\tFROM\tREASON")
	}
	for _, e := range d.Exemptions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", e.Namespace, manifest.PrintableLine(e.Name), manifest.PrintableLine(strings.Join(e.Workloads, ",")), e.Pods, e.Until.Format(time.RFC3339), manifest.PrintableLine(strings.Join(e.Objects, ",")), manifest.PrintableLine(e.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// difference describes what differs: "PodDefault a/b: 2 outdated, 1 missing".
func (w *DriftedWorkload) difference() string {
	var out []string
	for _, title := range slices.Sorted(maps.Keys(w.PodDefaults)) {
		var counts []string
		for _, state := range drift.States() {
			if n := w.PodDefaults[title][state]; n > 0 {
				counts = append(counts, strconv.Itoa(n)+" "+string(state))
			}
		}
		out = append(out, title+": "+strings.Join(counts, ", "))
	}
	if len(w.Missed) > 0 && w.Kind != "Pod" {
		const most = 5
		out = append(out, "missed: "+strings.Join(w.Missed[:min(len(w.Missed), most)], ", "))
		if more := len(w.Missed) - most; more > 0 {
			out[len(out)-1] += fmt.Sprintf(" and %d more", more)
		}
	}
	return strings.Join(out, "; ")
}
