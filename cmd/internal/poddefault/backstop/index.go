// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Index files every object that injects into pods of a namespace: PodDefaults by
// name and ClusterPodDefaults as cluster/NAME, the form used in pod annotations.
// [Template] is its stored form.
type Index struct {
	// Objects is the number of filed objects.
	Objects int
	// Omitted are the names of objects without room. The policy knows only one label that each of
	// them selects by, under [omitted]: it rejects pods with this label that no server has decided on,
	// whether the object selects them or not.
	Omitted []string
	// Pages file objects by a label that selected pods must have, ordered by label key.
	Pages []Page
	// Rest holds the objects that cannot be filed under a label, because they may
	// select pods without labels. The format is the same as in a page.
	Rest []string
}

// A Page is a part of an index. It is short text instead of a tree, because everything
// a policy reads costs time for each pod.
type Page struct {
	// From is the first key in the page. Prefix is common to all its keys.
	From, Prefix string
	// Terms are labels with the objects filed under them, each as ";key=value:objects",
	// or ";key:objects" for any value. Keys omit the prefix. Commas separate objects.
	// Each is NAME#VERSION followed by the pod's other requirements, separated by
	// spaces: "=key|value|value" for In, "!key|value|value" for NotIn, "+key" for
	// Exists and "-key" for DoesNotExist. The name "@N" means the key without its first
	// N characters.
	Terms string
}

const (
	// maxIndexBytes is the approximate JSON limit of an index. etcd accepts 1.5 MiB.
	maxIndexBytes = 768 << 10
	// pageBytes is the approximate size of a page. The policy compares a label of the
	// pod with the first key of each page, then searches one page.
	pageBytes = 8 << 10
	// pageOverhead is the approximate size of a page without its terms.
	pageOverhead = 100
	// maxOmittedBytes limits the labels of objects without room. Beyond it, first the keys stand for
	// all values, and then every pod counts as selected.
	maxOmittedBytes = 64 << 10
	// maxTerms limits the terms under which one object is filed. An object with more
	// values for its key is filed under the key alone.
	maxTerms = 16
)

// omitted stands for objects without room, among the names of objects.
const omitted = "*"

// Compile builds the index of a namespace. The order of entries does not matter: equal
// entries give equal indexes. ClusterPodDefaults come first, so that PodDefaults of a tenant
// take no room from them. Objects have no room if they are too large by themselves, or
// are the last ones by name.
func Compile(entries []*Entry) Index {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b *Entry) int {
		return cmp.Or(-cmp.Compare(a.ofCluster(), b.ofCluster()), strings.Compare(a.decision, b.decision))
	})
	var index Index
	total := 0
	var kept, left []*Entry
	for _, e := range entries {
		if e.size > maxEntryBytes || total+e.size > maxIndexBytes {
			index.Omitted = append(index.Omitted, e.decision)
			left = append(left, e)
			continue
		}
		total += e.size
		kept = append(kept, e)
	}
	slices.Sort(index.Omitted)
	slices.SortFunc(kept, func(a, b *Entry) int { return strings.Compare(a.decision, b.decision) })
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
	if reached, all := omittedTerms(left); all {
		index.Rest = append(index.Rest, omitted+"#0")
	} else {
		for key, terms := range reached {
			if byKey[key] == nil {
				byKey[key] = map[string][]string{}
			}
			for term := range terms {
				byKey[key][term] = append(byKey[key][term], omitted+"#0")
			}
		}
	}
	index.Pages = pages(slices.Sorted(maps.Keys(byKey)), byKey)
	return index
}

// omittedTerms returns the terms by key of which each pod has one that these objects select, or that
// there are no such terms: an object selects pods without labels, or they take too much room.
func omittedTerms(entries []*Entry) (byKey map[string]map[string]bool, all bool) {
	byKey = map[string]map[string]bool{}
	size := 0
	for _, e := range entries {
		i := slices.IndexFunc(e.requirements, func(r metav1.LabelSelectorRequirement) bool { return terms(r) != nil })
		if i < 0 {
			return nil, true
		}
		key := e.requirements[i].Key
		if byKey[key] == nil {
			byKey[key] = map[string]bool{}
		}
		for _, term := range terms(e.requirements[i]) {
			if !byKey[key][term] {
				byKey[key][term] = true
				size += len(term) + omittedOverhead
			}
		}
	}
	if size <= maxOmittedBytes {
		return byKey, false
	}
	size = 0
	for key := range byKey {
		byKey[key] = map[string]bool{key: true}
		size += len(key) + omittedOverhead
	}
	return byKey, size > maxOmittedBytes
}

// omittedOverhead is the size of a term beside its text.
const omittedOverhead = len(";:" + omitted + "#0")

// pages keeps the terms of a key together. Keys get pages of their own if omitting
// their common prefix saves more than a page costs. The keys are sorted.
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
		n := 1 // keys with the same next letter
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

// commonPrefix returns the common prefix of sorted keys.
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

// filedBy returns the requirement under which an object is filed, or a negative number.
// It chooses the one whose terms the fewest objects share, because a label in all
// selectors does not discriminate.
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

// text returns an object's name and the requirements other than the one it was found
// by; see [Page].
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

// terms returns the terms under which an object with this requirement is filed, or none
// if pods without the label may match. See [covered] for whether they are sufficient.
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

// covered reports whether every pod found by a term meets the requirement.
func covered(r metav1.LabelSelectorRequirement) bool {
	return r.Operator == metav1.LabelSelectorOpExists || r.Operator == metav1.LabelSelectorOpIn && len(r.Values) <= maxTerms
}
