// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Messages name the PodDefault, the field, the container, both sides and the remedy.
// They never contain a value: env variables and annotations may be secret, and messages
// end up in events and logs.

// A conflict is a disagreement that an object's policy does not resolve.
type conflict struct {
	object   *plan.Plan
	opponent *plan.Plan // nil: the pod
	// alone is set if there is no other value to keep, for example where a label is
	// missing: Keep then skips the object.
	alone bool
	// way is how a conflict is resolved that no policy resolves; empty for others.
	way  string
	text string
}

// conflicts are those found so far.
type conflicts struct {
	pod           *podstate.Pod
	Conflicts     []conflict
	atOdds        map[[2]*plan.Plan]bool // pairs with a conflict, once there are many
	moreConflicts int
	dropped       *conflict // the first conflict because of which an object is to be skipped
}

// skippable reports whether the object's policy skips it.
func (c *conflict) skippable() bool {
	return c.way == "" && (c.object.Policy == kubeflowv1alpha1.ConflictSkip || c.alone && c.object.Policy == kubeflowv1alpha1.ConflictKeepPod)
}

// Denies reports whether a conflict denies the pod.
func (cs *conflicts) Denies() bool {
	return slices.ContainsFunc(cs.Conflicts, func(c conflict) bool { return !c.skippable() })
}

// skippedBefore returns the skippable objects that, according to the pod's annotations,
// were skipped in this generation. An earlier call decided that, and its own changes to
// the pod must not reverse it.
//
// Where exclusion is not allowed, that must have been an earlier call for this request.
func skippedBefore(chosen match.Match, pod *meta.Metadata, b *meta.Budget) (skipped []skip) {
	for _, c := range chosen.Objects {
		skippable := c.Policy == kubeflowv1alpha1.ConflictSkip || c.Policy == kubeflowv1alpha1.ConflictKeepPod
		if !skippable || c.Problem() != nil || c.Audit {
			continue
		}
		mark := c.SkipMark()
		if strings.HasPrefix(pod.Annotations.Get(mark), c.SkipValue("")) && (c.AllowExclude() || !pod.Past(b).Came(mark)) {
			skipped = append(skipped, skip{object: c, reason: "it was before; remove the annotation " + mark + " to have it tried again"})
		}
	}
	return skipped
}

func isSkipped(skipped []skip, c *plan.Plan) bool {
	return slices.ContainsFunc(skipped, func(s skip) bool { return s.object.String() == c.String() })
}

// An arbiter settles what an object finds in its way, by the object's policy.
type arbiter struct {
	trial
	warnings
	conflicts
	reach
	metadata
	overriders map[place][]override // built on demand, see [arbiter.replacedSince]
}

// settle applies the policy of c to a disagreement. It reports whether c's value
// replaces the opponent's; a nil opponent is the pod. Since reports whether what there is was
// put there by a later object, see [arbiter.replacedSince]; nil if nothing could be.
func (ar *arbiter) settle(c, opponent *plan.Plan, policy kubeflowv1alpha1.ConflictPolicy, place, detail string, since func() bool) bool {
	if opponent == nil && (ar.excused(c, policy, place) || policy == kubeflowv1alpha1.ConflictOverride && since != nil && since()) {
		return false
	}
	switch policy {
	case kubeflowv1alpha1.ConflictKeepPod:
		ar.warn("%s: %s: kept the value of %s", c, place, holderName(opponent))
	case kubeflowv1alpha1.ConflictOverride:
		if opponent != nil {
			ar.warn("%s: %s: replaced by %s", opponent, place, c)
			return true
		}
		ar.warn("%s: %s: replaced the pod's value", c, place)
		return true
	default:
		if since == nil || !since() {
			ar.deny(c, opponent, place, detail)
		}
	}
	return false
}

// excused reports whether the pod keeps a value of its own that c disagrees with, because
// an earlier version of c injected the pod.
func (ar *arbiter) excused(c *plan.Plan, policy kubeflowv1alpha1.ConflictPolicy, place string) bool {
	if !refuses(policy) || !ar.changedSince(c) {
		return false
	}
	ar.warn("%s: %s: kept the value of an earlier revision", c, place)
	return true
}

func (ar *arbiter) deny(c, opponent *plan.Plan, place, detail string) {
	found := conflict{object: c, opponent: opponent}
	if opponent != nil && opponent.String() != c.String() && opponent.Alternative(c) && !found.skippable() {
		return // both select the pod, which is the whole message
	}
	if opponent != nil {
		ar.conflict(found, "%s: %s", plan.BothSet(opponent, c, place), detail)
		return
	}
	ar.conflict(found, "%s: %s: %s (values hidden)", c, place, detail)
}

// stuck is [arbiter.settle] where nothing can be replaced: Override keeps the existing
// value.
func (ar *arbiter) stuck(c, opponent *plan.Plan, place, detail string, since func() bool) {
	policy := c.Policy
	if policy == kubeflowv1alpha1.ConflictOverride {
		policy = kubeflowv1alpha1.ConflictKeepPod
	}
	ar.settle(c, opponent, policy, place, detail, since)
}

// refuses reports whether a conflict under this policy denies the pod or skips the
// object.
func refuses(policy kubeflowv1alpha1.ConflictPolicy) bool {
	return policy != kubeflowv1alpha1.ConflictKeepPod && policy != kubeflowv1alpha1.ConflictOverride
}

// changedSince reports whether another version of the object injected the pod, because
// a backup is restored or a pod is copied. Differences then come from that version.
// Anyone can write a mark. A user who may exclude the pod gains nothing by it; where
// exclusion is not allowed, a mark excuses nothing.
func (ar *arbiter) changedSince(c *plan.Plan) bool {
	mark, marked := ar.Pod.Annotations.Lookup(c.MarkKey)
	if !c.AllowExclude() && marked && ar.Pod.Past(&ar.Pod.Bounds).Came(c.MarkKey) {
		return false
	}
	return marked && !c.WroteAs(mark, ar.Pod.Past(&ar.Pod.Bounds).Revisions[c.Decision()])
}

// disagree settles a disagreement between wanted and the existing element other.
func (ar *arbiter) disagree(l *podstate.List, wanted plan.Item, other *plan.Item, differences []string, t *podstate.Container, id string) {
	c, opponent, at := wanted.Origin, other.Origin, placeIn(l.Kind, wanted.Key, t)
	if opponent == nil && t != nil {
		opponent = t.Origin
	}
	detail := "they differ in " + strings.Join(differences, ", ")
	switch {
	case opponent != nil:
	case l.Kind == plan.EnvKind:
		have, want := envSource(other.Value), envSource(wanted.Value)
		if have == want {
			want = "another"
		}
		detail = fmt.Sprintf("the pod has %s, wanted is %s", have, want)
	default:
		detail = "it differs from that of the pod in " + strings.Join(differences, ", ")
	}
	since := func() bool {
		original := l.Original(wanted.Key)
		return original != nil && ar.replacedSince(c, place{id, wanted.Key}, t, ar.mesh, func(later jsontext.Value) bool {
			return len(l.Kind.Compare(&ar.Pod.Bounds, later, original)) == 0
		})
	}
	if t != nil && ar.isInjected(t.Name) && other.Origin == nil {
		ar.stuck(c, opponent, at, detail, since)
	} else if ar.settle(c, opponent, c.Policy, at, detail, since) {
		l.Replace(wanted)
	}
}

// another describes a conflicting single value.
func another(opponent *plan.Plan) string {
	if opponent == nil {
		return "the pod has another value"
	}
	return "the values differ"
}

// placeIn names a list element for messages.
func placeIn(kind *plan.ListKind, key string, t *podstate.Container) string {
	return placeOf(kind.Name+" "+key, t)
}

// placeOf adds the container to a message. A nil container means none.
func placeOf(what string, t *podstate.Container) string {
	if t != nil {
		return what + " of container " + t.Name
	}
	return what
}

// envSource says where a variable's value comes from, without the value.
func envSource(env jsontext.Value) string {
	from := plan.Member(env, "valueFrom")
	if from.Kind() != '{' {
		return "a literal value"
	}
	source := "an unknown source"
	r := rawjson.NewReader(from)
	r.Object(func(name []byte) {
		if strings.HasSuffix(string(name), "Ref") {
			source = "a " + string(name)
		}
	})
	return source
}

// conflict records a conflict with its text. Beyond the report limit, it keeps one
// conflict per pair of objects, because those decide what happens to the objects.
func (cs *conflicts) conflict(c conflict, format string, args ...any) {
	if len(cs.Conflicts) >= meta.MaxTold {
		if cs.atOdds == nil {
			cs.atOdds = map[[2]*plan.Plan]bool{}
			for _, known := range cs.Conflicts {
				cs.atOdds[[2]*plan.Plan{known.object, known.opponent}] = true
			}
		}
		two := [2]*plan.Plan{c.object, c.opponent}
		if cs.atOdds[two] {
			cs.moreConflicts++
			return
		}
		cs.atOdds[two] = true
	}
	cs.pod.Bounds.Did(workOfRival)
	c.text = fmt.Sprintf(format, args...)
	cs.Conflicts = append(cs.Conflicts, c)
	if cs.dropped == nil && c.skippable() {
		cs.dropped = &c
	}
}

// Denial denies a pod with conflicts. It begins with the text that clients of
// Kubeflow's webhook look for.
func (m *Merge) Denial() *admission.Response {
	texts := make([]string, len(m.Conflicts))
	objects := slices.Clip(m.Applied)
	for i, c := range m.Conflicts {
		if texts[i] = c.text; !plan.IsIn(objects, c.object) {
			objects = append(objects, c.object)
		}
	}
	resp := admission.BadRequest(
		"conflict occurred while applying poddefaults: %s on pod: %s err: %s. %s",
		plan.Names(objects), m.Pod.Name, meta.Few(texts, "; ", m.moreConflicts), m.remedy())
	resp.AuditAnnotations = m.deniedBy()
	return resp.Warn(m.Told()...)
}

// remedy says who can resolve the conflicts, and how. The pod's author can exclude the
// pod if all objects allow it.
func (cs *conflicts) remedy() string {
	var ways []string
	var change, pair bool
	exclude := true
	for _, c := range cs.Conflicts {
		switch {
		case c.way != "":
			if !slices.Contains(ways, c.way) {
				ways = append(ways, c.way)
			}
		case c.opponent == nil:
			change = true
		default:
			pair = true
		}
		exclude = exclude && c.object.AllowExclude()
	}
	if change {
		ways = append(ways, "change the pod or a PodDefault")
	}
	if pair {
		ways = append(ways, "change one selector, or set spec.conflictPolicy")
	}
	if exclude {
		ways = append(ways, "exclude the pod with the annotation "+meta.ExcludeAnnotation+`: "true"`)
	}
	text := strings.Join(ways, ", or ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// impossible records that two elements are impossible together. A nil object stands for
// the pod. Keeping what the pod has means skipping the object.
func (cs *conflicts) impossible(a, b *plan.Plan, what string) {
	if a == nil || b != nil && plan.InOrder(a, b) < 0 {
		a, b = b, a // the later or only one
	}
	switch {
	case a == nil:
		return
	case b != nil && a.String() != b.String() && a.Alternative(b) && !(&conflict{object: a, alone: true}).skippable(): // already denied for that
		return
	case b == nil || a.String() == b.String():
		cs.conflict(conflict{object: a, alone: true}, "%s: %s, which the API server refuses", a, what)
	default:
		cs.conflict(conflict{object: a, opponent: b, alone: true}, "%s: %s, which the API server refuses", plan.Both(a, b), what)
	}
}
