// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
)

// What one pod may be and get. None of it can be reached by a pod that a cluster could
// run; all of it together keeps what one review costs below some 200 ms of processor time
// and 32 MiB of memory, whoever sends it.
const (
	// maxPod is how many bytes of JSON a pod may have, with all that is added to it.
	// kube-apiserver takes no larger request (k8s.io/apiserver, MaxRequestBodyBytes), and
	// etcd stores half of that by default. The patch is bounded by the same figure.
	maxPod = 3 << 20
	// maxContainers is how many a pod may have, init containers and sidecars included.
	maxContainers = 1000
	// maxElements is how many elements of lists and maps of a pod are looked at or added.
	maxElements = 20_000
	// maxObjects is how many objects may select one pod.
	maxObjects = 500
	// maxSelected is how many bytes of JSON their specs may have, all together. They are
	// decoded when a pod selects them for the first time.
	maxSelected = 4 << 20
	// maxLabelRounds is how often labels that objects add may select further objects.
	maxLabelRounds = 16
	// maxWork is how much may be compared. The unit is a byte of JSON that is decoded;
	// other work counts as what takes as long.
	maxWork = 4 << 20
	// maxTold is how many conflicts or warnings are told one by one.
	maxTold = 50
)

// What work costs, in units of maxWork.
const (
	workOfVisit      = 16      // an object that looks at a container, or a container at a name
	workOfComparison = 128     // two elements, besides their bytes
	workOfObject     = 4       // an object in one of them and an object in the other
	workOfLabel      = 2       // a label of the pod by which objects are looked for
	workOfScan       = 32      // so many bytes that are passed over are one unit
	workBetweenLooks = 1 << 16 // at the deadline
)

// bounds are what is left of the limits for one pod. What a call may cost in all is
// carried from one attempt to merge to the next: see [bounds.another].
type bounds struct {
	ctx      context.Context // of the call
	work     int             // done
	look     int             // at how much work the deadline is looked at next
	bytes    int             // of the pod, and added to it
	elements int             // looked at or added
	ahead    int             // read with the pod, see [list.take]
	applied  int             // objects that are merged into the pod
	fault    error           // the deadline has passed
	over     string          // the limit that is exceeded, for people
}

func newBounds(ctx context.Context) bounds { return bounds{ctx: ctx, look: workBetweenLooks} }

// another is for another attempt at the same pod.
func (b *bounds) another() bounds {
	return bounds{ctx: b.ctx, work: b.work, look: b.look}
}

// spent tells whether there is no sense in going on: what was found out so far counts
// for nothing.
func (b *bounds) spent() bool { return b.over != "" || b.fault != nil }

// did notes work.
func (b *bounds) did(work int) {
	if b.work += work; b.work < b.look {
		return
	}
	b.look = b.work + workBetweenLooks
	if b.work > maxWork {
		b.exceed("merging it takes more comparisons than one pod may cost")
	}
	if err := b.ctx.Err(); err != nil && b.fault == nil {
		b.fault = fmt.Errorf("merging PodDefaults: %w", err)
	}
}

// compares notes that two values are compared, and tells whether they may be. Of a list
// of objects each is held against each.
func (b *bounds) compares(want, have jsontext.Value) bool {
	objects := bytes.Count(want, []byte("{")) * bytes.Count(have, []byte("{"))
	b.did(len(want) + len(have) + workOfComparison + workOfObject*objects)
	return !b.spent()
}

// scans notes that so many bytes were passed over.
func (b *bounds) scans(bytes int) { b.did(bytes/workOfScan + 1) }

// grow notes an element that is added, of so many bytes.
func (b *bounds) grow(bytes int) {
	if b.bytes += bytes; b.bytes > maxPod {
		b.exceed(fmt.Sprintf("with it the pod would have more than %d MiB, which no API server stores", maxPod>>20))
	}
	b.reads()
}

// reads notes an element of the pod that is looked at, and tells whether there may be
// more.
func (b *bounds) reads() bool {
	if b.elements++; b.elements > maxElements {
		b.exceed(fmt.Sprintf("with it there would be more than %d elements in the pod's lists", maxElements))
	}
	return b.over == ""
}

func (b *bounds) exceed(limit string) {
	if b.over == "" {
		b.over = limit
	}
}

// An excess is a limit that a pod with its objects exceeds. It is a decision: another
// call would end in the same way.
type excess struct {
	object *Compiled // whose turn it was; nil: the pod exceeds the limit by itself
	all    []*Compiled
	text   string
	remedy string
}

// Error implements error.
func (e *excess) Error() string { return e.text }

// denial names the objects, what is too much, and the remedy.
func (e *excess) denial(pod string) *admission.Response {
	who, denied := "PodDefaults "+names(e.all), e.all
	if e.object != nil {
		who, denied = e.object.String(), []*Compiled{e.object}
	}
	resp := admission.Deniedf("%s cannot be applied to pod %s: %s. %s", who, pod, e.text, e.remedy)
	if len(denied) > 0 {
		resp.AuditAnnotations = map[string]string{"denied": generations(denied)}
	}
	return resp
}

// exceeded notes once, for the object whose turn it is, that a limit is exceeded, and
// tells whether to stop.
func (m *merge) exceeded(c *Compiled, place func() string) bool {
	b := &m.pod.bounds
	if !b.spent() {
		return false
	}
	if m.excess == nil && b.over != "" {
		m.excess = &excess{object: c, all: m.applied, text: place() + ": " + b.over,
			remedy: "Let the PodDefault add less, or the pod have fewer containers" + m.orExclude(c)}
	}
	return true
}

// orExclude is how the author of the pod can do without an object that allows it.
func (m *merge) orExclude(c *Compiled) string {
	if !c.allowExclude {
		return ""
	}
	return ", or exclude the pod with the annotation " + ExcludeAnnotation + `: "true"`
}

// told are the warnings, and how many more there would have been.
func (m *merge) told() []string {
	if m.untold == 0 {
		return m.warnings
	}
	return append(m.warnings, fmt.Sprintf("and %d more warnings about PodDefaults", m.untold))
}

// few lists texts, but no more than are told one by one; more is how many there are
// besides.
func few(texts []string, separator string, more int) string {
	if more += max(0, len(texts)-maxTold); more > 0 {
		texts = append(slices.Clone(texts[:min(len(texts), maxTold)]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, separator)
}

// A nameSet is a set of names that grows. The zero value is empty.
type nameSet struct {
	list []string
	set  map[string]bool // once there are many
}

func (s *nameSet) add(name string) {
	s.list = append(s.list, name)
	if s.set != nil {
		s.set[name] = true
	} else if len(s.list) > shortList {
		s.set = make(map[string]bool, 2*len(s.list))
		for _, n := range s.list {
			s.set[n] = true
		}
	}
}

func (s *nameSet) has(name string) bool {
	if s.set != nil {
		return s.set[name]
	}
	for _, n := range s.list {
		if n == name {
			return true
		}
	}
	return false
}

// exceedsItself tells whether the pod exceeds a limit before anything is added.
func (m *merge) exceedsItself() bool {
	b := &m.pod.bounds
	if b.over != "" {
		m.excess = &excess{all: m.applied, text: b.over, remedy: "Give it less, or no label that PodDefaults select by"}
	}
	return b.spent()
}

// beyond is a limit that was exceeded, as an [*excess], or the deadline; nil if there is
// neither.
func (m *merge) beyond() error {
	if m.excess == nil && m.pod.bounds.over != "" { // while it was written down
		m.excess = &excess{all: m.applied, text: m.pod.bounds.over, remedy: "Let PodDefaults add less"}
	}
	switch {
	case m.pod.bounds.fault != nil:
		return m.pod.bounds.fault
	case m.excess != nil:
		return m.excess
	}
	return nil
}
