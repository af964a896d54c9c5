// SPDX-License-Identifier: Apache-2.0

// Package revision reads and writes the revisions of PodDefaults and ClusterPodDefaults:
// PodDefaultRevisions beside a PodDefault, and cluster-scoped ClusterPodDefaultRevisions.
//
// Anyone with a right to write these kinds can write anything into them. [Prove] is the only
// way to a [Record] that may be used, and all readers go through it: a revision counts for
// the object whose UID its owner reference has, in the same namespace, if the hash of its
// spec is its name.
package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/labels"
)

// Size is the length of the name of a revision: 128 bits, so that no two specs with the same
// name can be found.
const Size = 32

// ShortSize is the length of names on a screen.
const ShortSize = 12

// Labels of revisions.
const (
	// Label is the name of the revision.
	Label = "sallyport.io/revision"
	// StableLabel is "true" on the stable revision of an object with spec.rollout.
	StableLabel = "sallyport.io/stable"
	// OwnerLabel is the name of the owner. A label has at most 63 characters: a longer name is
	// cut to 54, and gets a dash and the first 8 hex digits of its SHA-256.
	OwnerLabel = "sallyport.io/owner"
	// Selector selects all revisions, and StableSelector those of [StableLabel].
	Selector       = Label
	StableSelector = StableLabel + "=true"
)

// The longest name of an object, and the longest label.
const maxName, maxLabel = 253, 63

// generatedSuffix is what the API server adds to a generated name.
const generatedSuffix = 5

// NameOf returns the name of the revision with this meaning, which is canonical JSON: the
// first hex digits of its SHA-256.
func NameOf(meaning []byte) string {
	sum := sha256.Sum256(meaning)
	return hex.EncodeToString(sum[:Size/2])
}

// IsName reports whether text may be the name of a revision.
func IsName(text string) bool {
	return len(text) == Size && strings.Trim(text, "0123456789abcdef") == ""
}

// Short returns the beginning of a name, for people.
func Short(name string) string { return name[:min(len(name), ShortSize)] }

// Canonical returns JSON in the form of RFC 8785 with exact integers, or nil if it cannot.
func Canonical(raw []byte) []byte {
	value := jsontext.Value(append([]byte(nil), raw...))
	if value.Canonicalize(jsontext.CanonicalizeRawInts(false)) != nil {
		return nil
	}
	return value
}

// SelectorOf selects the revisions of an owner by labels, among others with a name that is
// shortened to the same.
func SelectorOf(owner string) labels.Set {
	return labels.Set{OwnerLabel: Shortened(owner, maxLabel)}
}

// objectName returns the name of the object for a revision.
func objectName(owner, name string) string {
	return Shortened(owner, maxName-2-Size-generatedSuffix) + "-" + name
}

// Shortened cuts a name that is longer than most, and appends the first 8 hex digits of its
// SHA-256.
func Shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digits := hex.EncodeToString(sum[:4])
	return name[:most-1-len(digits)] + "-" + digits
}
