// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/webhooks/internal/chain"
)

// tieredLocality are the arguments of NodeAffinityWithCache: which localities draw a pod
// to the cache of its Datasets, and how much. A name is fluid.io/node, fluid.io/fuse, or
// the key of a node's label that the workers' own affinity speaks of.
type tieredLocality struct {
	Preferred []locality `json:"preferred"`
	Required  []string   `json:"required"`
}

type locality struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

func (t *tieredLocality) validate() error {
	var errs []error
	for i, l := range t.Preferred {
		at := fmt.Sprintf("preferred[%d]", i)
		errs = append(errs, localityName(at+".name", l.Name))
		if l.Weight < 1 || l.Weight > 100 {
			errs = append(errs, fmt.Errorf("%s.weight: %d: a pod's node affinity allows 1 to 100", at, l.Weight))
		}
		if slices.ContainsFunc(t.Preferred[:i], func(other locality) bool { return other.Name == l.Name }) {
			errs = append(errs, fmt.Errorf("%s.name: %q stands there twice", at, l.Name))
		}
	}
	for i, name := range t.Required {
		at := fmt.Sprintf("required[%d]", i)
		errs = append(errs, localityName(at, name))
		if slices.Contains(t.Required[:i], name) {
			errs = append(errs, fmt.Errorf("%s: %q stands there twice", at, name))
		}
	}
	return errors.Join(errs...)
}

func localityName(at, name string) error {
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("%s: %q is no key of a label: %s", at, name, strings.Join(problems, "; "))
	}
	return nil
}

// weight is that of a locality, 0 if it is not preferred.
func (t *tieredLocality) weight(name string) int {
	for _, l := range t.Preferred {
		if l.Name == name {
			return l.Weight
		}
	}
	return 0
}

func (t *tieredLocality) has(name string) bool {
	return t.weight(name) > 0 || slices.Contains(t.Required, name)
}

// nodeAffinityWithCache draws pods to where the cache of their Datasets is: preferred,
// or required of Datasets that a label of the pod names.
type nodeAffinityWithCache struct{ tiers tieredLocality }

func newNodeAffinityWithCache(args string) (chain.Plugin[*draft], error) {
	p := &nodeAffinityWithCache{}
	if err := yaml.UnmarshalStrict([]byte(args), &p.tiers); err != nil {
		return nil, describe(err)
	}
	return p, p.tiers.validate()
}

// Mutate implements [chain.Plugin].
func (p *nodeAffinityWithCache) Mutate(_ context.Context, d *draft) (stop bool, err error) {
	required := d.requiredClaims()
	if len(p.tiers.Preferred) == 0 && len(p.tiers.Required) == 0 || len(d.mounted) == 0 {
		return false, nil
	}
	tiers := make([]tier, len(d.mounted))
	var own []requirement
	for i, m := range d.mounted {
		if tiers[i], err = p.tier(m); err != nil {
			return false, err
		}
		own = append(own, tiers[i].own...)
		for _, p := range m.Runtime.FuseSelector { // that another plugin requires
			own = append(own, requirement{key: p.key, operator: opIn, values: []string{p.value}})
		}
	}
	// Who says where to run knows better.
	if key := d.affinity.speaksOf(p.tiers.has, own); key != "" {
		return false, nil
	}
	var any alternatives
	var anyReason Reason
	var wanted []preferred
	for i, m := range d.mounted {
		if !slices.Contains(required, m.Claim) {
			wanted = append(wanted, tiers[i].preferred...)
			continue
		}
		reason := Reason{Plugin: nodeAffinityWithCacheName, Dataset: m.Title(), Why: "nodes where its cache is are required"}
		if d.settings.RequiredSemantics == RequireAny {
			for _, list := range tiers[i].any {
				any = any.or(list)
			}
			anyReason = reason
			continue
		}
		if err := d.require(tiers[i].all, reason); err != nil {
			return false, err
		}
	}
	if len(required) > 1 && len(any) > 1 {
		anyReason.Dataset, anyReason.Why = "", "nodes where the cache of one of the datasets is are required"
	}
	if err := d.require(any, anyReason); err != nil {
		return false, err
	}
	d.prefer(wanted)
	return false, nil
}

// requiredClaims are the claims that labels of the pod require the cache of. A label that
// names none of them has a warning.
func (d *draft) requiredClaims() []string {
	var claims []string
	for _, l := range d.pod.labels {
		claim, ok := strings.CutPrefix(string(l.key), "fluid.io/dataset.")
		if !ok {
			continue
		}
		claim, ok = strings.CutSuffix(claim, ".sched")
		if !ok || string(l.value) != "required" {
			continue
		}
		if d.dataset(claim) == nil {
			d.warnf("label %s has no effect: the pod mounts no dataset by a claim of the name %s", l.key, claim)
			continue
		}
		claims = append(claims, claim)
	}
	slices.Sort(claims)
	return claims
}

// A tier is what the localities come down to for one Dataset.
type tier struct {
	// all are the alternatives of which a node must meet one; each has all localities.
	all alternatives
	// any are the same by the older semantics: a term for each locality.
	any       alternatives
	preferred []preferred
	// own are all requirements that may be added, to know them again.
	own []requirement
}

// tier works out the localities of a Dataset, the built-in ones first.
func (p *nodeAffinityWithCache) tier(m *Mounted) (tier, error) {
	var t tier
	reason := Reason{Plugin: nodeAffinityWithCacheName, Dataset: m.Title()}
	prefer := func(weight int, r requirement, why string) {
		reason := reason
		reason.Weight, reason.Why, reason.wanted = weight, why, alternatives{{r}}
		t.preferred = append(t.preferred, preferred{weight: weight, term: term{expressions: []requirement{r}}, reason: reason})
	}
	for _, builtin := range []struct {
		name, why string
		label     func() (string, error)
	}{
		{nodeLocality, "nodes that hold its cache are preferred", m.cacheLabel},
		{fuseLocality, "nodes that mount it already are preferred", m.fuseLabel},
	} {
		if !p.tiers.has(builtin.name) {
			continue
		}
		label, err := builtin.label()
		if err != nil {
			return t, refusef("%v: wait until the dataset has been read, or give it a shorter name", err)
		}
		r := newRequirement(label, opIn, "true")
		t.own = append(t.own, r)
		if weight := p.tiers.weight(builtin.name); weight > 0 {
			prefer(weight, r, builtin.why)
		}
		if slices.Contains(p.tiers.Required, builtin.name) {
			t.all = t.all.and(alternatives{{r}})
			t.any = t.any.or([]requirement{r})
		}
	}
	var places alternatives
	everywhere := len(m.Runtime.Affinity) == 0
	var preferredKeys []requirement
	for i := range m.Runtime.Affinity {
		var list []requirement
		for _, r := range m.Runtime.Affinity[i].expressions {
			if !p.tiers.has(r.key) {
				continue
			}
			t.own = append(t.own, r)
			if slices.Contains(p.tiers.Required, r.key) {
				list = append(list, r)
				t.any = t.any.or([]requirement{r})
			}
			known := term{expressions: preferredKeys}
			if weight := p.tiers.weight(r.key); weight > 0 && !known.has(&r) {
				preferredKeys = append(preferredKeys, r)
				prefer(weight, r, "nodes that its workers' affinity about "+r.key+" selects are preferred")
			}
		}
		// A branch that says nothing about the localities lets the workers be anywhere.
		everywhere = everywhere || len(list) == 0
		places = places.or(list)
	}
	if !everywhere {
		t.all = t.all.and(places)
	}
	return t, nil
}
