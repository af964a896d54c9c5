// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// decidedOn reports whether the decisions annotation lists the object.
func decidedOn(annotations map[string]string, d *Default) bool {
	return slices.Contains(strings.Split(annotations[meta.DecisionsAnnotation], ","), d.Plan.Decision())
}

// addedBy returns the places that each object changes, without its mark.
func addedBy(out *review.Outcome) map[string][]string {
	added := map[string][]string{}
	for _, origin := range out.Origins() {
		if strings.HasPrefix(origin.Path, "/metadata/annotations/poddefault.admission.kubeflow.org~1") || strings.HasPrefix(origin.Path, "/metadata/annotations/sallyport.io~1") {
			continue
		}
		if where := workload.Place(out.After, origin.Path); !slices.Contains(added[origin.Source], where) {
			added[origin.Source] = append(added[origin.Source], where)
		}
	}
	return added
}
