// SPDX-License-Identifier: Apache-2.0

package dataset

import "fmt"

// maxLabelName is where Fluid stops to write the names of a Dataset into a label: a
// label's name has at most 63 characters, and Fluid counts the prefix before the slash
// with it.
const maxLabelName = 63

// labelOf is the label of a Dataset's nodes, by its prefix: with namespace and name, or
// with the UID if that would be too long. The error says that the UID is not known.
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
