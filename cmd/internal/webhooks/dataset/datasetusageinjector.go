// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"slices"
	"strings"
)

// datasetUsageInjector adds the names of the pod's Datasets to an annotation. Datasets
// that only sidecars mount do not count.
func datasetUsageInjector(_ context.Context, d *draft) (stop bool, err error) {
	if len(d.mounted) == 0 {
		return false, nil
	}
	var names []string
	present, _ := d.annotation(InUseAnnotation)
	for name := range strings.SplitSeq(present, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	for _, m := range d.mounted {
		if !m.nested {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	d.annotate(InUseAnnotation, strings.Join(slices.Compact(names), ","), datasetUsageInjectorName+": the datasets of the pod")
	return false, nil
}
