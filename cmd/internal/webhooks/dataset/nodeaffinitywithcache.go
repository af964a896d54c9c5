// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/affinity"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/pipeline"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// tieredLocality are the arguments of NodeAffinityWithCache: which localities attract a
// pod to the cache of its Datasets, and with which weight. A name is fluid.io/node,
// fluid.io/fuse, or the key of a node label in the workers' own affinity.
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
			errs = append(errs, fmt.Errorf("%s.name: duplicate %q", at, l.Name))
		}
	}
	for i, name := range t.Required {
		at := fmt.Sprintf("required[%d]", i)
		errs = append(errs, localityName(at, name))
		if slices.Contains(t.Required[:i], name) {
			errs = append(errs, fmt.Errorf("%s: duplicate %q", at, name))
		}
	}
	return errors.Join(errs...)
}

func localityName(at, name string) error {
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("%s: %q is not a key of a label: %s", at, name, strings.Join(problems, "; "))
	}
	return nil
}

// weight returns the weight of a locality, 0 if it is not preferred.
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

// nodeAffinityWithCache attracts pods to the cache of their Datasets: as a preference,
// or as a requirement for Datasets named by a label of the pod.
type nodeAffinityWithCache struct{ tiers tieredLocality }

func newNodeAffinityWithCache(args string) (pipeline.Plugin[*draft], error) {
	p := &nodeAffinityWithCache{}
	if err := yaml.UnmarshalStrict([]byte(args), &p.tiers); err != nil {
		return nil, describe(err)
	}
	return p, p.tiers.validate()
}

// Mutate implements [pipeline.Plugin].
func (p *nodeAffinityWithCache) Mutate(_ context.Context, d *draft) (stop bool, err error) {
	required := d.requiredClaims()
	if len(p.tiers.Preferred) == 0 && len(p.tiers.Required) == 0 || len(d.mounted) == 0 {
		return false, nil
	}
	tiers := make([]tier, len(d.mounted))
	var own []nodeterms.Requirement
	for i, m := range d.mounted {
		if tiers[i], err = p.tier(m, slices.Contains(required, m.Claim)); err != nil {
			return false, err
		}
		if d.affinity.Given {
			own = append(append(own, tiers[i].own...), m.Runtime.FuseSelector...) // required by another plugin
		}
	}
	// The pod's author has chosen nodes explicitly.
	if d.affinity.Given && d.affinity.SpeaksOf(p.tiers.has, own) != "" {
		return false, nil
	}
	var any nodeterms.Alternatives
	var anyReason affinity.Reason
	var wanted []affinity.Preferred
	for i, m := range d.mounted {
		if !slices.Contains(required, m.Claim) {
			wanted = append(wanted, tiers[i].preferred...)
			continue
		}
		reason := affinity.Reason{Plugin: nodeAffinityWithCacheName, Dataset: m.Title(), Why: "nodes where its cache is are required"}
		if d.settings.RequiredSemantics == RequireAny {
			for _, list := range tiers[i].any {
				any = any.Or(list)
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

// The parts around a claim's name in a label that requires its Dataset.
var schedPrefix, schedSuffix = []byte("fluid.io/dataset."), []byte(".sched")

// requiredClaims returns the claims whose cache the pod's labels require. A label
// without a matching claim causes a warning.
func (d *draft) requiredClaims() []string {
	var claims []string
	for _, l := range d.pod.Labels.List {
		between, ok := bytes.CutPrefix(l.Key, schedPrefix)
		if !ok {
			continue
		}
		between, ok = bytes.CutSuffix(between, schedSuffix)
		if !ok || string(l.Value) != "required" {
			continue
		}
		claim := string(between)
		if d.dataset(claim) == nil {
			d.warnf("label %s has no effect: the pod mounts no dataset by a claim of the name %s", l.Key, claim)
			continue
		}
		claims = append(claims, claim)
	}
	slices.Sort(claims)
	return claims
}

// A tier is what the localities mean for one Dataset.
type tier struct {
	// all are alternatives with all localities each. A node must meet one.
	all nodeterms.Alternatives
	// any are the alternatives by the older semantics: one term per locality.
	any       nodeterms.Alternatives
	preferred []affinity.Preferred
	// own are all requirements that may be added, to recognize them.
	own []nodeterms.Requirement
}

// tier computes the localities of a Dataset, the built-in ones first.
func (p *nodeAffinityWithCache) tier(m *Mounted, required bool) (tier, error) {
	t := tier{preferred: make([]affinity.Preferred, 0, 4)}
	prefer := func(weight int, one []nodeterms.Requirement, why, key string) {
		t.preferred = append(t.preferred, affinity.Preferred{
			Weight: weight, Expressions: one,
			Reason: affinity.Reason{Plugin: nodeAffinityWithCacheName, Dataset: m.Title(), Weight: weight, Why: why, Key: key, One: one},
		})
	}
	for _, builtin := range [...]struct {
		name, why string
		label     *label
	}{
		{nodeLocality, "nodes that hold its cache are preferred", &m.dataset.cache},
		{fuseLocality, "nodes that mount it already are preferred", &m.dataset.fuse},
	} {
		if !p.tiers.has(builtin.name) {
			continue
		}
		if builtin.label.problem != nil {
			return t, refusef("%v: wait until the dataset has been read, or give it a shorter name", builtin.label.problem)
		}
		one := builtin.label.requirement
		t.own = append(t.own, one...)
		if weight := p.tiers.weight(builtin.name); weight > 0 && !required {
			prefer(weight, one, builtin.why, "")
		}
		if required && slices.Contains(p.tiers.Required, builtin.name) {
			t.all = t.all.And(nodeterms.Alternatives{one})
			t.any = t.any.Or(one)
		}
	}
	var places nodeterms.Alternatives
	everywhere := len(m.Runtime.Affinity) == 0
	for i := range m.Runtime.Affinity {
		var list []nodeterms.Requirement
		expressions := m.Runtime.Affinity[i].Expressions
		for j := range expressions {
			r := &expressions[j]
			if !p.tiers.has(r.Key) {
				continue
			}
			known := t.hasOwn(r)
			t.own = append(t.own, *r)
			if required && slices.Contains(p.tiers.Required, r.Key) {
				list = append(list, *r)
				t.any = t.any.Or(expressions[j : j+1 : j+1])
			}
			if weight := p.tiers.weight(r.Key); weight > 0 && !known && !required {
				prefer(weight, expressions[j:j+1:j+1], "nodes that its workers' affinity selects are preferred,", r.Key)
			}
		}
		if required {
			// A branch without localities allows workers anywhere.
			everywhere = everywhere || len(list) == 0
			places = places.Or(list)
		}
	}
	if required && !everywhere {
		t.all = t.all.And(places)
	}
	return t, nil
}

// hasOwn reports whether the requirement is already in own.
func (t *tier) hasOwn(r *nodeterms.Requirement) bool {
	for i := range t.own {
		if t.own[i].Same(r) {
			return true
		}
	}
	return false
}
