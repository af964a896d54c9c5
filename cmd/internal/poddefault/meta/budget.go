// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Limits for one pod. No pod that a cluster can run reaches any of them. Together they
// keep the cost of any review below about 200 ms of CPU time and 32 MiB of memory.
const (
	// MaxPod limits the JSON size of a pod in bytes, including additions.
	// kube-apiserver accepts no larger request (k8s.io/apiserver, MaxRequestBodyBytes),
	// and etcd stores half of it by default. The patch has the same limit.
	MaxPod = 3 << 20
	// MaxContainers limits the containers of a pod, including init containers and
	// sidecars.
	MaxContainers = 1000
	// MaxElements limits the list and map elements of a pod that are read or added.
	MaxElements = podmeta.MaxEntries
	// MaxObjects limits the objects that select one pod.
	MaxObjects = 500
	// MaxSelected limits the total JSON size of their specs in bytes. They are decoded
	// when a pod first selects them.
	MaxSelected = 4 << 20
	// maxWork limits comparisons. The unit is one byte of decoded JSON. Other work
	// counts by the time it takes.
	maxWork = 4 << 20
	// MaxTold limits the conflicts or warnings reported individually.
	MaxTold = 50
)

// Costs in units of maxWork.
const (
	WorkOfVisit      = 16      // an object that reads a container, or a container at a name
	WorkOfComparison = 128     // two elements, in addition to their bytes
	workOfObject     = 4       // an object of one list compared with an object of the other
	WorkOfLabel      = 2       // a label of the pod used for lookup
	workOfScan       = 32      // number of skipped bytes per unit
	workBetweenLooks = 1 << 16 // between checks of the deadline
)

// Budget track what is left of the limits for one pod. The total cost of a call carries
// Over from one merge attempt to the next: see [Budget.Another].
type Budget struct {
	Context  context.Context // of the call
	Work     int             // so far
	look     int             // work at which to check the deadline next
	Bytes    int             // of the pod and additions
	elements int             // read or added
	Ahead    int             // read with the pod, see [podstate.list.take]
	Applied  int             // objects merged into the pod
	Fault    error           // the deadline has passed
	Over     string          // the exceeded limit, for messages
}

// NewBudget returns the whole budget of a call.
func NewBudget(ctx context.Context) Budget { return Budget{Context: ctx, look: workBetweenLooks} }

// Another returns bounds for another attempt at the same pod.
func (b *Budget) Another() Budget {
	return Budget{Context: b.Context, Work: b.Work, look: b.look}
}

// Spent reports whether to stop: the results so far are useless.
func (b *Budget) Spent() bool { return b.Over != "" || b.Fault != nil }

// Did counts work.
func (b *Budget) Did(work int) {
	if b.Work += work; b.Work < b.look {
		return
	}
	b.look = b.Work + workBetweenLooks
	if b.Work > maxWork {
		b.Exceed("merging it takes more comparisons than one pod may cost")
	}
	if err := b.Context.Err(); err != nil && b.Fault == nil {
		b.Fault = fmt.Errorf("merging PodDefaults: %w", err)
	}
}

// Compares counts a comparison of two values and reports whether it is allowed. In
// lists of objects, each object is compared with each.
func (b *Budget) Compares(want, have jsontext.Value) bool {
	objects := bytes.Count(want, []byte("{")) * bytes.Count(have, []byte("{"))
	b.Did(len(want) + len(have) + WorkOfComparison + workOfObject*objects)
	return !b.Spent()
}

// Scans counts skipped bytes.
func (b *Budget) Scans(bytes int) { b.Did(bytes/workOfScan + 1) }

var tooLarge = fmt.Sprintf("with it the pod would have more than %d MiB, which no API server stores", MaxPod>>20)

// Grow counts an added element and its bytes.
func (b *Budget) Grow(bytes int) {
	if b.Bytes += bytes; b.Bytes > MaxPod {
		b.Exceed(tooLarge)
	}
	b.Reads()
}

// Replaces counts the bytes by which a replaced element grows.
func (b *Budget) Replaces(before, after int) {
	if b.Bytes += max(0, after-before); b.Bytes > MaxPod {
		b.Exceed(tooLarge)
	}
}

// Reads counts an element read from the pod and reports whether more are allowed.
func (b *Budget) Reads() bool {
	if b.elements++; b.elements > MaxElements {
		b.Exceed(fmt.Sprintf("with it there would be more than %d elements in the pod's lists", MaxElements))
	}
	return b.Over == ""
}

// Exceed records the first limit that is exceeded, for messages.
func (b *Budget) Exceed(limit string) {
	if b.Over == "" {
		b.Over = limit
	}
}

// Few joins texts up to the limit and adds how many are left out.
func Few(texts []string, separator string, more int) string {
	if more += max(0, len(texts)-MaxTold); more > 0 {
		texts = append(slices.Clone(texts[:min(len(texts), MaxTold)]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, separator)
}

// A NameSet is a growing set of names. The zero value is empty.
type NameSet struct {
	list []string
	set  map[string]bool // once there are many
}

// Add adds a name.
func (s *NameSet) Add(name string) {
	s.list = append(s.list, name)
	if s.set != nil {
		s.set[name] = true
	} else if len(s.list) > podmeta.ShortList {
		s.set = make(map[string]bool, 2*len(s.list))
		for _, n := range s.list {
			s.set[n] = true
		}
	}
}

// Has reports whether the set has the name.
func (s *NameSet) Has(name string) bool {
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
