// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A ValueRule defines what an existing value of a field means.
type ValueRule struct {
	// Unwritten is the policy for objects without one. Fields older than policies
	// override or give way, as they always did.
	Unwritten kubeflowv1alpha1.ConflictPolicy
	// Unset reports whether the pod's value counts as unset, in addition to null: API
	// defaults, which look the same as explicit values. Nil means no value does.
	Unset func(have jsontext.Value) bool
	// Removes lists fields that the API server derived from the old value and would
	// refuse next to the new one.
	Removes [][]string
	// Command is set for fields that follow the exclusion of command and args.
	Command bool
	// Running is set for fields that only long-running containers may have: no init
	// containers except native sidecars.
	Running bool
}

var (
	// plainRule is for fields that conflict with any other value.
	plainRule = &ValueRule{}

	// ServiceAccountRule knows that the ServiceAccount plugin has set a missing name to
	// "default". The deprecated serviceAccount is left to the API server.
	ServiceAccountRule = &ValueRule{Unwritten: kubeflowv1alpha1.ConflictOverride, Unset: anyOf(`""`, `"default"`)}
	automountRule      = &ValueRule{Unwritten: kubeflowv1alpha1.ConflictOverride}
	commandRule        = &ValueRule{Unwritten: kubeflowv1alpha1.ConflictKeepPod, Unset: empty, Command: true}

	// priorityClassRule: the Priority plugin has already computed both numbers. It
	// refuses a pod whose numbers do not match its class when it runs again.
	priorityClassRule = &ValueRule{
		Unset:   anyOf(`""`),
		Removes: [][]string{{"priority"}, {"preemptionPolicy"}},
	}
	// runtimeClassRule: the RuntimeClass plugin has set the overhead of the pod's
	// class, and refuses a different one when it runs again.
	runtimeClassRule = &ValueRule{Removes: [][]string{{"overhead"}}}
	// Fields that the API server has defaulted.
	graceRule         = &ValueRule{Unset: anyOf("30")}
	schedulerRule     = &ValueRule{Unset: anyOf(`""`, `"default-scheduler"`)}
	serviceLinksRule  = &ValueRule{Unset: anyOf("true")}
	dnsPolicyRule     = &ValueRule{Unset: anyOf(`""`, `"ClusterFirst"`)}
	messagePolicyRule = &ValueRule{Unset: anyOf(`""`, `"File"`)}

	lifecycleRule = &ValueRule{Running: true}
)

// anyOf returns a [ValueRule.Unset] for these values, as the API server encodes them.
func anyOf(values ...string) func(jsontext.Value) bool {
	return func(have jsontext.Value) bool { return slices.Contains(values, string(have)) }
}

// Policy returns c's policy for a conflict over the field.
func (r *ValueRule) Policy(c *Plan) kubeflowv1alpha1.ConflictPolicy {
	if c.Policy == "" {
		return r.Unwritten
	}
	return c.Policy
}

// fieldsOf creates a value for each member of an encoded object, ordered by name,
// except those to leave out.
func fieldsOf(values []FieldValue, object jsontext.Value, rule *ValueRule, leave []string, tokens ...string) []FieldValue {
	members := map[string]jsontext.Value{}
	r := rawjson.NewReader(object)
	r.Object(func(name []byte) { members[string(name)] = r.Value() })
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(leave, name) {
			values = append(values, FieldValue{append(slices.Clone(tokens), name), members[name], rule})
		}
	}
	return values
}

// Satisfies reports whether a value of the field is the wanted one.
func (r *ValueRule) Satisfies(b *meta.Budget, want, have jsontext.Value) bool {
	if bytes.Equal(want, have) || !b.Compares(want, have) {
		return true
	}
	// The API server may have added defaults to a hook.
	return len(Subset(want, have)) == 0 && (r == lifecycleRule || len(Subset(have, want)) == 0)
}
