// SPDX-License-Identifier: Apache-2.0

package poddefault

// Revisions of an object are kept as ControllerRevisions: next to a PodDefault, and in
// Sallyport's namespace for a ClusterPodDefault. The object owns them, so they are deleted
// with it.

// Labels of ControllerRevisions.
const (
	// RevisionLabel is the name of the revision.
	RevisionLabel = "sallyport.io/revision"
	// OwnerLabel and ClusterOwnerLabel are the name of the PodDefault or ClusterPodDefault.
	// A label has at most 63 characters: a longer name is cut to 54, and gets a dash and
	// the first 8 hex digits of its SHA-256.
	OwnerLabel        = "sallyport.io/poddefault"
	ClusterOwnerLabel = "sallyport.io/clusterpoddefault"
	// RevisionSelector selects all ControllerRevisions of Sallyport.
	RevisionSelector = RevisionLabel
)

// The longest name of an object, and the longest label.
const longestName, longestLabel = 253, 63

// RevisionName returns the name of the ControllerRevision with the object's revision.
func RevisionName(c *Compiled) string {
	prefix := "poddefault-"
	if c.Cluster() {
		prefix = "clusterpoddefault-"
	}
	return prefix + shortened(c.name, longestName-len(prefix)-1-RevisionSize) + "-" + c.revision
}

// RevisionLabels returns the labels of that ControllerRevision.
func RevisionLabels(c *Compiled) map[string]string {
	out := RevisionsOf(c.Cluster(), c.name)
	out["app.kubernetes.io/managed-by"], out[RevisionLabel] = "sallyport", c.revision
	return out
}

// RevisionsOf returns the labels that select the ControllerRevisions of an object.
func RevisionsOf(cluster bool, name string) map[string]string {
	if cluster {
		return map[string]string{ClusterOwnerLabel: shortened(name, longestLabel)}
	}
	return map[string]string{OwnerLabel: shortened(name, longestLabel)}
}

// Meaning is what the object's revision has; see [Meaning].
func (c *Compiled) Meaning() []byte {
	return meaning(c.packed, c.namespaceSelector, c.Cluster() && c.allowExclude)
}
