// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Index files each object that injects into pods of a namespace: PodDefaults by their
// name, ClusterPodDefaults as cluster/NAME, as the annotation of pods lists them. How it is
// stored is in [Template].
type Index struct {
	// Objects is how many are filed; Omitted is how many are not, because there is no
	// room: for them the policy does not stand in.
	Objects, Omitted int
	// Pages file objects by a label that a pod must have to be selected, in the order of
	// the label's key.
	Pages []Page
	// Rest are the objects that no label can file, because pods without any may be
	// selected; each as in a page.
	Rest []string
}

// A Page is a part of an index. It is text and not a tree, and short: what a policy reads
// costs something for each pod.
type Page struct {
	// From is the first key in the page, and Prefix what all keys begin with.
	From, Prefix string
	// Terms are labels with the objects that are filed under them, each as
	// ";key=value:objects", or ";key:objects" if any value will do; the prefix of the key
	// is left out. Objects are separated by commas. Each is NAME#VERSION and, separated by
	// spaces, what else a pod must meet: "=key|value|value" for In, "!key|value|value" for
	// NotIn, "+key" for Exists and "-key" for DoesNotExist. The name is "@N" if it is the key
	// without its first N characters.
	Terms string
}

const (
	// maxIndexBytes is the JSON that an index may take, about; etcd takes 1.5 MiB.
	maxIndexBytes = 768 << 10
	// pageBytes is what a page takes, about. The policy compares a label of the pod with
	// the first key of each page, and then searches one page.
	pageBytes = 8 << 10
	// pageOverhead is what a page takes besides its terms, about.
	pageOverhead = 100
	// maxTerms is how many terms file one object. One with more values for its key is
	// filed by the key alone.
	maxTerms = 16
)

// Compile makes the index of a namespace. The order of the entries does not matter:
// equal ones give equal indexes. What there is no room for is counted, and left out: first
// objects that are large by themselves, then the last ones by name.
func Compile(entries []*Entry) Index {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b *Entry) int { return strings.Compare(a.decision, b.decision) })
	var index Index
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
	index.Objects = len(kept)
	popularity := map[string]int{}
	for _, e := range kept {
		for _, r := range e.requirements {
			for _, term := range terms(r) {
				popularity[term]++
			}
		}
	}
	byKey := map[string]map[string][]string{} // objects by key and term
	for _, e := range kept {
		by := e.filedBy(popularity)
		if by < 0 {
			index.Rest = append(index.Rest, e.text(by))
			continue
		}
		key := e.requirements[by].Key
		if byKey[key] == nil {
			byKey[key] = map[string][]string{}
		}
		text := e.text(by)
		if strings.HasSuffix(key, e.decision) {
			text = "@" + strconv.Itoa(len(key)-len(e.decision)) + strings.TrimPrefix(text, e.decision)
		}
		for _, term := range terms(e.requirements[by]) {
			byKey[key][term] = append(byKey[key][term], text)
		}
	}
	index.Pages = pages(slices.Sorted(maps.Keys(byKey)), byKey)
	return index
}

// pages keeps the terms of a key together, and gives pages of their own to keys that
// have so much in common that leaving it out saves more than the page costs. The keys are
// sorted.
func pages(keys []string, byKey map[string]map[string][]string) []Page {
	var out []Page
	var page []string
	size := 0
	flush := func() {
		if len(page) > 0 {
			out = append(out, newPage(page, byKey))
		}
		page, size = nil, 0
	}
	common := len(commonPrefix(keys))
	for len(keys) > 0 {
		n := 1 // those with the same next letter
		for n < len(keys) && len(keys[0]) > common && keys[n][common] == keys[0][common] {
			n++
		}
		group := keys[:n]
		keys = keys[n:]
		if (len(commonPrefix(group))-common)*n > pageOverhead {
			flush()
			out = append(out, pages(group, byKey)...)
			continue
		}
		for _, key := range group {
			page = append(page, key)
			if size += termBytes(byKey[key]); size >= pageBytes {
				flush()
			}
		}
	}
	flush()
	return out
}

func newPage(keys []string, byKey map[string]map[string][]string) Page {
	prefix := commonPrefix(keys)
	var text strings.Builder
	for _, key := range keys {
		for _, term := range slices.Sorted(maps.Keys(byKey[key])) {
			text.WriteString(";" + strings.TrimPrefix(term, prefix) + ":" + strings.Join(byKey[key][term], ","))
		}
	}
	return Page{From: keys[0], Prefix: prefix, Terms: text.String()}
}

func termBytes(terms map[string][]string) (n int) {
	for term, objects := range terms {
		n += len(term)
		for _, object := range objects {
			n += len(object)
		}
	}
	return n
}

// commonPrefix is that of sorted keys.
func commonPrefix(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	first, last := keys[0], keys[len(keys)-1]
	n := 0
	for n < len(first) && n < len(last) && first[n] == last[n] {
		n++
	}
	return first[:n]
}

// filedBy is the requirement by which an object is filed: the one whose terms the fewest
// objects share, for a label that all selectors ask for tells nothing. It is negative if
// there is none.
func (e *Entry) filedBy(popularity map[string]int) int {
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
	return by
}

// text is the name of an object and what a pod must meet that was found by the
// requirement; see [Page].
func (e *Entry) text(by int) string {
	out := []string{e.decision + "#" + e.version}
	for i, r := range e.requirements {
		if i == by && covered(r) {
			continue
		}
		out = append(out, strings.Join(append([]string{operators[r.Operator] + r.Key}, r.Values...), "|"))
	}
	return strings.Join(out, " ")
}

var operators = map[metav1.LabelSelectorOperator]string{
	metav1.LabelSelectorOpIn: "=", metav1.LabelSelectorOpNotIn: "!",
	metav1.LabelSelectorOpExists: "+", metav1.LabelSelectorOpDoesNotExist: "-",
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
