// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// zoneSeparator separates the zones of a multi-zone volume in its label:
// "us-central1-a__us-central1-b".
const zoneSeparator = "__"

// requirements returns the requirements that labels imply, ordered by key. The value of
// a zone label is a set of zones.
func requirements(labels map[string]string) ([]nodeterms.Requirement, error) {
	out := make([]nodeterms.Requirement, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		values := []string{labels[key]}
		if key == corev1.LabelTopologyZone || key == corev1.LabelFailureDomainBetaZone {
			var ok bool
			if values, ok = zones(labels[key]); !ok {
				return nil, fmt.Errorf("failed to convert label string for Zone: %s to a Set: a zone is empty; it must be one zone, or several joined by %s", labels[key], zoneSeparator)
			}
		}
		out = append(out, nodeterms.New(key, nodeterms.In, values...))
	}
	return out, nil
}

// zones returns the sorted parts of a zone label. It reports false if one is empty.
func zones(value string) ([]string, bool) {
	parts := strings.Split(value, zoneSeparator)
	for i := range parts {
		if parts[i] = strings.TrimSpace(parts[i]); parts[i] == "" {
			return nil, false
		}
	}
	slices.Sort(parts)
	return slices.Compact(parts), true
}

// invalid returns why the API server would refuse a cloud's labels, or "". It reports
// the first problem by key.
func invalid(labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Sprintf("label key %q: %s", key, strings.Join(problems, "; "))
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			return fmt.Sprintf("the value of label %s: %s", key, strings.Join(problems, "; "))
		}
	}
	return ""
}
