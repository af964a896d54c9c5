// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// An arbiter resolves what an object finds in its way, by the object's policy.
type arbiter struct {
	trial
	warnings
	conflicts
	reach
	metadata
	overriders map[place][]override // built on demand, see [arbiter.replacedSince]
}

// resolve applies the policy of c to a disagreement. It reports whether c's value
// replaces the opponent's; a nil opponent is the pod. Since reports whether what there is was
// put there by a later object, see [arbiter.replacedSince]; nil if nothing could be.
func (ar *arbiter) resolve(c, opponent *plan.Plan, policy kubeflowv1alpha1.ConflictPolicy, place, detail string, since func() bool) bool {
	if opponent == nil && (ar.tolerates(c, policy, place) || policy == kubeflowv1alpha1.ConflictOverride && since != nil && since()) {
		return false
	}
	switch policy {
	case kubeflowv1alpha1.ConflictKeepPod:
		ar.warn("%s: %s: kept the value of %s", c, place, holder(opponent, "the pod"))
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

// tolerates reports whether the pod keeps a value of its own that c disagrees with, because
// an earlier version of c injected the pod.
func (ar *arbiter) tolerates(c *plan.Plan, policy kubeflowv1alpha1.ConflictPolicy, place string) bool {
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
		ar.conflict(found, "%s: %s", compare.BothSet(opponent, c, place), detail)
		return
	}
	ar.conflict(found, "%s: %s: %s (values hidden)", c, place, detail)
}

// resolveFixed is [arbiter.resolve] where nothing can be replaced: Override keeps the existing
// value.
func (ar *arbiter) resolveFixed(c, opponent *plan.Plan, place, detail string, since func() bool) {
	policy := c.Policy
	if policy == kubeflowv1alpha1.ConflictOverride {
		policy = kubeflowv1alpha1.ConflictKeepPod
	}
	ar.resolve(c, opponent, policy, place, detail, since)
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
	mark, _ := ar.Pod.Annotations.Lookup(c.MarkKey)
	return ar.triedBefore(c) && !c.WroteAs(mark, ar.Pod.Past(&ar.Pod.Bounds).Revisions[c.Decision()])
}

// triedBefore reports whether the pod has a mark of the object that may count: where exclusion is not
// allowed, one of an earlier call for the same request.
func (ar *arbiter) triedBefore(c *plan.Plan) bool {
	return ar.Pod.Annotations.Has(c.MarkKey) && (c.AllowExclude() || !ar.Pod.Past(&ar.Pod.Bounds).Came(c.MarkKey))
}

// disagree resolves a disagreement between wanted and the existing element other.
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
	case l.Kind == plan.VolumeKind && plan.Member(other.Value, volumeSource(wanted.Value)).Kind() != '{':
		detail = "that of the pod has another source, wanted is " + volumeSource(wanted.Value)
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
		ar.resolveFixed(c, opponent, at, detail, since)
	} else if ar.resolve(c, opponent, c.Policy, at, detail, since) {
		l.Replace(wanted)
	}
}

// volumeSource returns the field that is the source of an object's volume. A pod's may have fields
// that are not known.
func volumeSource(volume jsontext.Value) string {
	source := "emptyDir" // the API server's default
	r := rawjson.NewReader(volume)
	r.Object(func(name []byte) {
		if string(name) != "name" {
			source = string(name)
		}
	})
	return source
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
