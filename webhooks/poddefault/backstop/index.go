// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

const (
	// maxIndexBytes is the JSON that an index may take, about; etcd takes 1.5 MiB.
	maxIndexBytes = 768 << 10
	// maxTerms is how many terms file one object. One with more values for its key is
	// filed by the key alone.
	maxTerms = 16
)

// Compile makes the index of a namespace. The order of the entries does not matter:
// equal ones give equal indexes. What there is no room for is counted, and left out: first
// objects that are large by themselves, then the last ones by name.
func Compile(entries []*Entry) sallyportv1alpha1.PodDefaultIndexSpec {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b *Entry) int { return strings.Compare(a.decision, b.decision) })
	var index sallyportv1alpha1.PodDefaultIndexSpec
	total := 0
	kept := entries[:0]
	for _, e := range entries {
		if e.size > maxEntryBytes || total+e.size > maxIndexBytes {
			index.Omitted++
			continue
		}
		total += e.size
		kept = append(kept, e)
	}
	index.Objects = int32(len(kept)) //nolint:gosec // an entry has several bytes, so there are fewer than maxIndexBytes
	popularity := map[string]int{}
	for _, e := range kept {
		for _, r := range e.requirements {
			for _, term := range terms(r) {
				popularity[term]++
			}
		}
	}
	for _, e := range kept {
		file(&index, e, popularity)
	}
	return index
}

// file adds an object. It is filed by the requirement whose terms the fewest objects
// share: a label that all selectors ask for tells nothing.
func file(index *sallyportv1alpha1.PodDefaultIndexSpec, e *Entry, popularity map[string]int) {
	by, fewest := -1, 0
	for i, r := range e.requirements {
		n := 0
		for _, term := range terms(r) {
			n = max(n, popularity[term])
		}
		if n > 0 && (by < 0 || n < fewest) {
			by, fewest = i, n
		}
	}
	others := e.requirements
	if by < 0 {
		index.Rest = append(index.Rest, e.decision)
	} else {
		if index.Terms == nil {
			index.Terms = map[string][]string{}
		}
		for _, term := range terms(e.requirements[by]) {
			index.Terms[term] = append(index.Terms[term], e.decision)
		}
		if covered(e.requirements[by]) {
			others = slices.Concat(e.requirements[:by], e.requirements[by+1:])
		}
	}
	if len(others) > 0 {
		if index.Selectors == nil {
			index.Selectors = map[string][]metav1.LabelSelectorRequirement{}
		}
		index.Selectors[e.decision] = others
	}
}

// terms are those under which an object with such a requirement is filed; none if pods
// without the label may meet it. Whether they say all, see [covered].
func terms(r metav1.LabelSelectorRequirement) []string {
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		if !covered(r) {
			return []string{r.Key}
		}
		out := make([]string, len(r.Values))
		for i, value := range r.Values {
			out[i] = r.Key + "=" + value
		}
		return out
	case metav1.LabelSelectorOpExists:
		return []string{r.Key}
	default:
		return nil
	}
}

// covered tells whether a pod that is found by a term of the requirement meets it.
func covered(r metav1.LabelSelectorRequirement) bool {
	return r.Operator == metav1.LabelSelectorOpExists || r.Operator == metav1.LabelSelectorOpIn && len(r.Values) <= maxTerms
}
