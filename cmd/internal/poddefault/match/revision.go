// SPDX-License-Identifier: Apache-2.0

package match

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// An Arrival decides which revisions a pod gets. It is the same each time that the API
// server calls for the pod, except for marks from earlier calls.
//
// Keep it off the heap: no field may escape to an interface, or each review allocates the
// pod's metadata.
type Arrival struct {
	*meta.Metadata
	Bounds *meta.Budget
}

// resolve replaces the selected objects of which a rollout is in progress by the revision
// that the pod gets. Outside are those that do not select the pod in that revision. The
// pinned objects are selected in any revision.
func (a *Arrival) resolve(source Source, selected, pinned []*plan.Plan) (resolved, outside []*plan.Plan, err error) {
	if len(pinned) == 0 && !slices.ContainsFunc(selected, func(c *plan.Plan) bool { return c.Rollout != nil }) {
		return selected, nil, nil
	}
	namespace, _ := source.NamespaceLabels(a.Namespace)
	selected = slices.DeleteFunc(selected, func(c *plan.Plan) bool { return plan.IsIn(pinned, c) })
	for _, c := range append(selected, pinned...) {
		r := c.Rollout
		switch {
		case r == nil:
			resolved = append(resolved, c)
			continue
		case r.Stable == nil:
			return nil, nil, admission.Unavailable(fmt.Errorf("%s is being rolled out, and its stable revision is not known yet", c), time.Second)
		}
		gets := r.Stable
		if a.getsCurrent(r, namespace) {
			gets = r.Current
		}
		if gets == c || gets.Version() == c.Version() || plan.IsIn(pinned, c) { // only one revision is filed if both select the same pods
			resolved = append(resolved, gets)
		} else {
			outside = append(outside, c)
		}
	}
	outside = slices.DeleteFunc(outside, func(c *plan.Plan) bool { return plan.IsIn(resolved, c) })
	if len(pinned) > 0 {
		slices.SortFunc(resolved, plan.InOrder)
	}
	return resolved, outside, nil
}

// getsCurrent reports whether the pod gets the current revision, given the labels of its
// namespace. A pod that an earlier call for the same request has marked keeps its revision,
// although another replica may have entered a step.
func (a *Arrival) getsCurrent(r *plan.Rollout, namespace labels.Set) bool {
	if len(r.Steps) == 0 {
		return false
	}
	if resourceVersion, revision, applied := Kept(a.Metadata, r.Current, a.Bounds); applied {
		if r.Current.WroteAs(resourceVersion, revision) { // or a server that knows no revisions, and gives all pods the current one
			return true
		}
		if revision == r.Stable.Revision() {
			return false
		}
	}
	return slices.ContainsFunc(r.Steps, func(s plan.RolloutStep) bool {
		return (s.Namespaces == nil || s.Namespaces.Matches(namespace)) && (s.Pods == nil || s.Pods.Matches(a.Labels)) &&
			(s.Percent >= 100 || s.Percent > 0 && r.PerPod && a.Unplaced || a.place(r) < s.Percent)
	})
}

// place returns a number below 100 for the pod or its workload: those with a number below
// a percentage are included. It differs between objects, so that not all of them try a
// change on the same workloads first.
func (a *Arrival) place(r *plan.Rollout) uint64 {
	unit := a.pod
	if !r.PerPod {
		unit = func() string { return meta.OfPod(a.Metadata, a.Bounds).Unit }
	}
	sum := sha256.Sum256([]byte(r.Current.String() + "\n" + a.Namespace + "\n" + unit()))
	return binary.BigEndian.Uint64(sum[:]) % 100
}

// pod names the pod. A pod with a generated name has none yet.
func (a *Arrival) pod() string {
	a.Complete()
	if name, ok := rawjson.Lookup(a.Raw, "name"); ok && len(name) > len(`""`) && name.Kind() == '"' {
		return a.Name
	}
	return string(a.Request)
}

// Kept returns what an earlier call for the same request has recorded about an object, and
// whether one has applied it. A mark that came with the request was not set by an earlier call,
// and neither was the recorded revision.
func Kept(md *meta.Metadata, c *plan.Plan, b *meta.Budget) (resourceVersion, revision string, applied bool) {
	mark := c.Unpack().MarkKey
	resourceVersion, marked := md.Annotations.Lookup(mark)
	if !marked {
		return "", "", false
	}
	past := md.Past(b)
	if past.Came(mark) {
		return "", "", false
	}
	return resourceVersion, past.Revisions[c.Decision()], true
}
