// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// carry adds what the annotations of an admitted pod say about objects that are gone.
func (e *Explanation) carry(known *Defaults, stored *manifest.Object) {
	told := map[string]bool{} // annotations already covered
	for _, d := range known.All {
		told[d.Plan.Mark()] = true
	}
	const gone = "there is no such object now"
	marks := map[string]meta.CarriedMark{}
	for _, mark := range meta.Marks(stored.Annotations) {
		marks[mark.Annotation] = mark
	}
	add := func(title, mark, skipped string) {
		if told[mark] {
			return
		}
		told[mark] = true
		detail := gone
		if strings.HasPrefix(title, "ClusterPodDefault ") && known.clusterHidden {
			detail = "there is no such object now, or you may not read it"
		}
		value, applied := marks[mark]
		if applied {
			detail = "as it was at " + value.State() + "; " + detail
		} else if _, skip := stored.Annotations[skipped]; skip {
			detail = "it was skipped because of a conflict; " + detail
		} else {
			detail = "it was looked at; " + detail
		}
		e.Carried = append(e.Carried, explained{Name: title, Applied: applied, Detail: detail})
	}
	for name := range strings.SplitSeq(stored.Annotations[meta.DecisionsAnnotation], ",") {
		of, ofCluster := strings.CutPrefix(name, meta.ClusterDecision)
		if mark := (meta.CarriedMark{Cluster: ofCluster, Name: of}); name != "" {
			add(mark.Title(e.Namespace), meta.MarkFor(name), meta.SkipMarkFor(name))
		}
	}
	// Kubeflow's webhook writes no list.
	for _, mark := range meta.Marks(stored.Annotations) {
		add(mark.Title(e.Namespace), mark.Annotation, "")
	}
}
