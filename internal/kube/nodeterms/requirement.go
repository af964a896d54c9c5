// SPDX-License-Identifier: Apache-2.0

// Package nodeterms has node selector terms in raw bytes: of node affinities of pods, runtimes and
// volumes. It reads them, tells what they have in common, and adds to them. It knows nothing of the
// objects that have them.
package nodeterms

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Operators of node selector requirements (k8s.io/api/core/v1, NodeSelectorOperator).
const (
	In           = "In"
	NotIn        = "NotIn"
	Exists       = "Exists"
	DoesNotExist = "DoesNotExist"
)

// A Requirement is one expression about a node's labels.
type Requirement struct {
	Key, Operator string
	Values        []string
	// Raw are its bytes, original or to be written.
	Raw jsontext.Value
}

// New encodes the fields in the order of the API type.
func New(key, operator string, values ...string) Requirement {
	raw := append([]byte(`{"key":`), rawjson.AppendString(nil, key)...)
	raw = append(raw, `,"operator":`...)
	raw = rawjson.AppendString(raw, operator)
	for i, value := range values {
		if i == 0 {
			raw = append(raw, `,"values":[`...)
		} else {
			raw = append(raw, ',')
		}
		raw = rawjson.AppendString(raw, value)
	}
	if len(values) > 0 {
		raw = append(raw, ']')
	}
	return Requirement{Key: key, Operator: operator, Values: values, Raw: append(raw, '}')}
}

// Same reports whether both require the same, ignoring the order of values.
func (r *Requirement) Same(other *Requirement) bool {
	if r.Key != other.Key || r.Operator != other.Operator || len(r.Values) != len(other.Values) {
		return false
	}
	if slices.Equal(r.Values, other.Values) {
		return true
	}
	a, b := slices.Clone(r.Values), slices.Clone(other.Values)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Contradicts reports whether no node can meet both.
func (r *Requirement) Contradicts(other *Requirement) bool {
	if r.Key != other.Key {
		return false
	}
	switch {
	case r.Operator == In && other.Operator == In:
		return !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(other.Values, v) })
	case r.Operator == In && other.Operator == NotIn:
		return !slices.ContainsFunc(r.Values, func(v string) bool { return !slices.Contains(other.Values, v) })
	case r.Operator == NotIn && other.Operator == In:
		return other.Contradicts(r)
	case r.Operator == DoesNotExist:
		return other.Operator == In || other.Operator == Exists || other.Operator == "Gt" || other.Operator == "Lt"
	case other.Operator == DoesNotExist:
		return other.Contradicts(r)
	}
	return false
}

// Meets reports whether a node with these labels meets the requirement. Gt and Lt are
// not supported and never met.
func (r *Requirement) Meets(labels map[string]string) bool {
	value, there := labels[r.Key]
	switch r.Operator {
	case In:
		return there && slices.Contains(r.Values, value)
	case NotIn:
		return !there || !slices.Contains(r.Values, value)
	case Exists:
		return there
	case DoesNotExist:
		return !there
	}
	return false
}

// String is for messages. It contains no values except "true".
func (r *Requirement) String() string {
	if r.Operator == In && len(r.Values) == 1 && r.Values[0] == "true" {
		return r.Key
	}
	return r.Key + " " + r.Operator
}

// Keys names the keys of a list, for messages.
func Keys(list []Requirement) string {
	if len(list) == 1 {
		return list[0].String()
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].String()
	}
	return strings.Join(names, ", ")
}
