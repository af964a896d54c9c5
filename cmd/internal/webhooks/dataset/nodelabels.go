// SPDX-License-Identifier: Apache-2.0

package dataset

import "fmt"

// maxLabelName is the length above which Fluid omits a Dataset's names from a label. A
// label name has at most 63 characters, and Fluid includes the prefix before the slash.
const maxLabelName = 63

// labelOf returns the label of a Dataset's nodes for a prefix: with namespace and name,
// or with the UID if that would be too long. The error means that the UID is unknown.
func labelOf(prefix, namespace, name, uid string) (string, error) {
	if label := prefix + namespace + "-" + name; len(label) < maxLabelName {
		return label, nil
	}
	if uid == "" {
		return "", fmt.Errorf("the label %s<namespace>-<name> of dataset %s/%s would have %d characters or more, and the dataset's UID, which stands in its place, is not known",
			prefix, namespace, name, maxLabelName)
	}
	return prefix + uid, nil
}
