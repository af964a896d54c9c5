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
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Limits for one pod. No pod that a cluster can run reaches any of them. Together they
// keep the cost of one review below about 200 ms of CPU time and 32 MiB of memory,
// whoever sends it.
const (
	// maxPod limits the JSON size of a pod in bytes, including additions.
	// kube-apiserver accepts no larger request (k8s.io/apiserver, MaxRequestBodyBytes),
	// and etcd stores half of it by default. The patch has the same limit.
	maxPod = 3 << 20
	// maxContainers limits the containers of a pod, including init containers and
	// sidecars.
	maxContainers = 1000
	// maxElements limits the list and map elements of a pod that are read or added.
	maxElements = 20_000
	// maxObjects limits the objects that select one pod.
	maxObjects = 500
	// maxSelected limits the total JSON size of their specs in bytes. They are decoded
	// when a pod first selects them.
	maxSelected = 4 << 20
	// maxWork limits comparisons. The unit is one byte of decoded JSON. Other work
	// counts by the time it takes.
	maxWork = 4 << 20
	// maxTold limits the conflicts or warnings reported individually.
	maxTold = 50
)

// Costs in units of maxWork.
const (
	workOfVisit      = 16      // an object that reads a container, or a container at a name
	workOfComparison = 128     // two elements, in addition to their bytes
	workOfObject     = 4       // an object of one list compared with an object of the other
	workOfLabel      = 2       // a label of the pod used for lookup
	workOfScan       = 32      // number of skipped bytes per unit
	workBetweenLooks = 1 << 16 // between checks of the deadline
)

// bounds track what is left of the limits for one pod. The total cost of a call carries
// over from one merge attempt to the next: see [bounds.another].
type bounds struct {
	ctx      context.Context // of the call
	work     int             // so far
	look     int             // work at which to check the deadline next
	bytes    int             // of the pod and additions
	elements int             // read or added
	ahead    int             // read with the pod, see [list.take]
	applied  int             // objects merged into the pod
	fault    error           // the deadline has passed
	over     string          // the exceeded limit, for messages
}

func newBounds(ctx context.Context) bounds { return bounds{ctx: ctx, look: workBetweenLooks} }

// another returns bounds for another attempt at the same pod.
func (b *bounds) another() bounds {
	return bounds{ctx: b.ctx, work: b.work, look: b.look}
}

// spent reports whether to stop: the results so far are useless.
func (b *bounds) spent() bool { return b.over != "" || b.fault != nil }

// did counts work.
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

// compares counts a comparison of two values and reports whether it is allowed. In
// lists of objects, each object is compared with each.
func (b *bounds) compares(want, have jsontext.Value) bool {
	objects := bytes.Count(want, []byte("{")) * bytes.Count(have, []byte("{"))
	b.did(len(want) + len(have) + workOfComparison + workOfObject*objects)
	return !b.spent()
}

// scans counts skipped bytes.
func (b *bounds) scans(bytes int) { b.did(bytes/workOfScan + 1) }

var tooLarge = fmt.Sprintf("with it the pod would have more than %d MiB, which no API server stores", maxPod>>20)

// grow counts an added element and its bytes.
func (b *bounds) grow(bytes int) {
	if b.bytes += bytes; b.bytes > maxPod {
		b.exceed(tooLarge)
	}
	b.reads()
}

// replaces counts the bytes by which a replaced element grows.
func (b *bounds) replaces(before, after int) {
	if b.bytes += max(0, after-before); b.bytes > maxPod {
		b.exceed(tooLarge)
	}
}

// reads counts an element read from the pod and reports whether more are allowed.
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

// An excess is a limit that a pod with its objects exceeds. It is a decision, because a
// retry would have the same result.
type excess struct {
	object *Compiled // the current one; nil if the pod alone exceeds the limit
	all    []*Compiled
	text   string
	remedy string
}

// Error implements error.
func (e *excess) Error() string { return e.text }

// denial names the objects, the exceeded limit and the remedy.
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

// exceeded records an exceeded limit once, for the current object, and reports whether
// to stop.
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

// orExclude tells the pod's author how to exclude the pod, if the object allows it.
func (m *merge) orExclude(c *Compiled) string {
	if !c.allowExclude {
		return ""
	}
	return ", or exclude the pod with the annotation " + meta.ExcludeAnnotation + `: "true"`
}

// told returns the warnings, with a count of those left out.
func (m *merge) told() []string {
	if m.untold == 0 {
		return m.warnings
	}
	return append(m.warnings, fmt.Sprintf("and %d more warnings about PodDefaults", m.untold))
}

// few joins texts up to the limit and adds how many are left out.
func few(texts []string, separator string, more int) string {
	if more += max(0, len(texts)-maxTold); more > 0 {
		texts = append(slices.Clone(texts[:min(len(texts), maxTold)]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, separator)
}

// A nameSet is a growing set of names. The zero value is empty.
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

// exceedsItself reports whether the pod alone exceeds a limit.
func (m *merge) exceedsItself() bool {
	b := &m.pod.bounds
	if b.over != "" {
		m.excess = &excess{all: m.applied, text: b.over, remedy: "Give it less, or no label that PodDefaults select by"}
	}
	return b.spent()
}

// beyond returns the exceeded limit as an [*excess], or the deadline error, or nil.
func (m *merge) beyond() error {
	if m.excess == nil && m.pod.bounds.over != "" { // while emitting the patch
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
