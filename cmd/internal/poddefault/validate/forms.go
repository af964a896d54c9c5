// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UISelectable returns why Kubeflow's forms cannot offer an object with the selector, or nothing. The forms
// only use the first key of matchLabels and set that label to "true".
func UISelectable(selector *metav1.LabelSelector) (reason string) {
	switch {
	case len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0:
		return "the selector is empty: it selects every pod, and there is nothing to choose"
	case len(selector.MatchLabels) == 0:
		return "the selector has no matchLabels; without them, Kubeflow's forms cannot list any object of the namespace"
	case len(selector.MatchLabels) > 1:
		return "the selector has several matchLabels; Kubeflow's forms set only one"
	case len(selector.MatchExpressions) > 0:
		return "the selector has matchExpressions, which Kubeflow's forms ignore"
	}
	for key, value := range selector.MatchLabels {
		if value != "true" {
			return fmt.Sprintf("the selector does not want \"true\" for the label %s, the only value that Kubeflow's forms set", key)
		}
	}
	return ""
}
