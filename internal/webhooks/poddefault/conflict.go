// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/rawjson"
)

// Messages name the PodDefault, the field, the container, both sides and the
// remedy. They never hold a value: env variables and annotations may be secret,
// and a message ends up in events and logs.

// A conflict is a disagreement that the policy of an object does not settle.
type conflict struct {
	object   *Compiled
	opponent *Compiled // nil: the pod
	// alone is set if there is nothing to keep, as where a label is missing: to keep
	// what the pod has is to skip the object.
	alone bool
	// final is set if no policy settles it.
	final bool
	text  string
}

// skippable tells whether the policy of the object is to be left out.
func (c *conflict) skippable() bool {
	return !c.final && (c.object.policy == kubeflowv1alpha1.ConflictSkip || c.alone && c.object.policy == kubeflowv1alpha1.ConflictKeepPod)
}

// denies tells whether there is a conflict for which the pod is denied.
func (m *merge) denies() bool {
	return slices.ContainsFunc(m.conflicts, func(c conflict) bool { return !c.skippable() })
}

// A skip is an object that is left out because of a conflict.
type skip struct {
	object *Compiled
	reason string
}

// skippedBefore finds, among the objects that may be skipped, those of which the pod
// says that they were, in this very generation: what an earlier call has decided for
// good reason must not be undone because of what it did to the pod.
func skippedBefore(chosen choice, annotations Labels, skipped []skip) (more []skip) {
	for _, c := range chosen.objects {
		skippable := c.policy == kubeflowv1alpha1.ConflictSkip || c.policy == kubeflowv1alpha1.ConflictKeepPod && c.template != nil
		if !skippable || c.problem != nil || c.audit || isSkipped(skipped, c) {
			continue
		}
		mark := c.skipMark()
		if strings.HasPrefix(annotations.Get(mark), c.skipValue("")) {
			more = append(more, skip{c, "it was before; remove the annotation " + mark + " to have it tried again"})
		}
	}
	return more
}

func isSkipped(skipped []skip, c *Compiled) bool {
	return slices.ContainsFunc(skipped, func(s skip) bool { return s.object.title == c.title })
}

// settle does what the policy of c says about a disagreement: it tells whether what
// c wants takes the place of what the opponent has, nil being the pod.
func (m *merge) settle(c, opponent *Compiled, policy kubeflowv1alpha1.ConflictPolicy, place, detail string) bool {
	if opponent == nil && c.allowExclude && refuses(policy) && m.changedSince(c) {
		m.warn("%s: %s: kept what the pod has from an earlier version of it", c, place)
		return false
	}
	switch policy {
	case kubeflowv1alpha1.ConflictKeepPod:
		m.warn("%s: %s: kept what %s has", c, place, holderName(opponent))
	case kubeflowv1alpha1.ConflictOverride:
		if opponent != nil { // who would have given way
			m.warn("%s: %s: kept what %s has", c, place, opponent)
			return false
		}
		m.warn("%s: %s: replaced what the pod has", c, place)
		return true
	default:
		m.deny(c, opponent, place, detail)
	}
	return false
}

func (m *merge) deny(c, opponent *Compiled, place, detail string) {
	if opponent != nil && opponent.title != c.title && opponent.alternative(c) {
		return // that the pod selects both says it all
	}
	if opponent != nil {
		m.conflict(conflict{object: c, opponent: opponent}, "%s: %s", bothSet(opponent, c, place), detail)
		return
	}
	m.conflict(conflict{object: c}, "%s: %s: %s (values hidden)", c, place, detail)
}

// stuck is [merge.settle] where nothing can be replaced: those who would override keep
// what is there.
func (m *merge) stuck(c, opponent *Compiled, place, detail string) {
	policy := c.policy
	if policy == kubeflowv1alpha1.ConflictOverride {
		policy = kubeflowv1alpha1.ConflictKeepPod
	}
	m.settle(c, opponent, policy, place, detail)
}

// refuses tells whether a conflict keeps the pod, or the object, from getting through.
func refuses(policy kubeflowv1alpha1.ConflictPolicy) bool {
	return policy != kubeflowv1alpha1.ConflictKeepPod && policy != kubeflowv1alpha1.ConflictOverride
}

// changedSince tells whether the pod was injected by another version of the object: a
// backup is restored, or a pod is copied. What differs then was put there by that version.
// Anybody can write a mark. Who can exclude the pod anyway gains nothing by it; where that
// is not allowed, a mark excuses nothing.
func (m *merge) changedSince(c *Compiled) bool {
	mark, marked := m.pod.annotations.Lookup(c.mark)
	return marked && mark != c.resourceVersion
}

// disagree settles that other stands in the way of wanted.
func (m *merge) disagree(l *list, wanted item, other *item, differences []string, t *container) {
	c, opponent, at := wanted.origin, other.origin, place(l.kind, wanted.key, t)
	if opponent == nil && t != nil {
		opponent = t.origin
	}
	detail := "they differ in " + strings.Join(differences, ", ")
	switch {
	case opponent != nil:
	case l.kind == envKind:
		have, want := envSource(other.value), envSource(wanted.value)
		if have == want {
			want = "another"
		}
		detail = fmt.Sprintf("the pod has %s, wanted is %s", have, want)
	default:
		detail = "it differs from that of the pod in " + strings.Join(differences, ", ")
	}
	if t != nil && m.isInjected(t.name) {
		m.stuck(c, opponent, at, detail)
	} else if m.settle(c, opponent, c.policy, at, detail) {
		l.replace(wanted)
	}
}

// another is the detail of a disagreement over what has a value alone.
func another(opponent *Compiled) string {
	if opponent == nil {
		return "the pod has another value"
	}
	return "the values differ"
}

// place names an element of a list, for people.
func place(kind *listKind, key string, t *container) string {
	return placeOf(kind.name+" "+key, t)
}

// placeOf says in which container something is; nil if it is in none.
func placeOf(what string, t *container) string {
	if t != nil {
		return what + " of container " + t.name
	}
	return what
}

// envSource says where a variable's value comes from, not what it is.
func envSource(env jsontext.Value) string {
	from := member(env, "valueFrom")
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

func member(object jsontext.Value, name string) jsontext.Value {
	value, _ := rawjson.Lookup(object, name)
	return value
}

// conflict notes a conflict, with its text. Of more than are told one by one, only one is kept for
// each two that do not agree: what becomes of the objects is decided by these.
func (m *merge) conflict(c conflict, format string, args ...any) {
	if len(m.conflicts) >= maxTold {
		if m.atOdds == nil {
			m.atOdds = map[[2]*Compiled]bool{}
			for _, known := range m.conflicts {
				m.atOdds[[2]*Compiled{known.object, known.opponent}] = true
			}
		}
		two := [2]*Compiled{c.object, c.opponent}
		if m.atOdds[two] {
			m.moreConflicts++
			return
		}
		m.atOdds[two] = true
	}
	m.pod.bounds.did(workOfRival)
	c.text = fmt.Sprintf(format, args...)
	m.conflicts = append(m.conflicts, c)
}

// skips are the objects that their policy leaves out because of the conflicts. All is
// set to leave out every one; otherwise those wait that conflict only with another
// one of them, which may be gone when they are looked at again.
func (m *merge) skips(all bool) []skip {
	candidates := map[*Compiled]bool{}
	for _, c := range m.conflicts {
		if c.skippable() {
			candidates[c.object] = true
		}
	}
	var skipped []skip
	for _, c := range m.conflicts {
		if c.skippable() && !isSkipped(skipped, c.object) && (all || c.opponent == nil || !candidates[c.opponent]) {
			skipped = append(skipped, skip{c.object, strings.TrimPrefix(c.text, c.object.title+": ")})
		}
	}
	return skipped
}

// denial is the answer to a pod with conflicts. Its beginning is what clients of
// the webhook that this one replaces look for.
func (m *merge) denial() *admission.Response {
	texts := make([]string, len(m.conflicts))
	for i, c := range m.conflicts {
		texts[i] = c.text
	}
	resp := admission.BadRequest(
		"conflict occurred while applying poddefaults: %s on pod: %s err: %s. %s",
		names(m.applied), m.pod.name, few(texts, "; ", m.moreConflicts), m.remedy())
	resp.AuditAnnotations = m.deniedBy()
	return resp.Warn(m.told()...)
}

// remedy says who can do what about the conflicts. The author of the pod can do without
// the objects if all of them allow it.
func (m *merge) remedy() string {
	var choose, change, pair bool
	exclude := true
	for _, c := range m.conflicts {
		switch {
		case c.final:
			choose = true
		case c.opponent == nil:
			change = true
		default:
			pair = true
		}
		exclude = exclude && c.object.allowExclude
	}
	var ways []string
	if choose {
		ways = append(ways, "choose one of the alternatives")
	}
	if change {
		ways = append(ways, "change the pod or a PodDefault")
	}
	if pair {
		ways = append(ways, "change one selector, or set spec.conflictPolicy")
	}
	if exclude {
		ways = append(ways, "exclude the pod with the annotation "+ExcludeAnnotation+`: "true"`)
	}
	text := strings.Join(ways, ", or ")
	return strings.ToUpper(text[:1]) + text[1:]
}
