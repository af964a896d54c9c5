// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Messages name the PodDefault, the field, the container, both sides and the
// remedy. They never hold a value: env variables and annotations may be secret,
// and a message ends up in events and logs.

// conflict notes that other stands in the way of wanted.
func (m *merge) conflict(wanted item, other *item, kind *listKind, container string, differences []string) {
	where := kind.name + " " + wanted.key
	if container != "" {
		where += " of container " + container
	}
	detail := "it differs from that of " + m.holder(other, "the pod") + " in " + strings.Join(differences, ", ")
	if kind == envKind {
		have, want := envSource(other.value), envSource(wanted.value)
		if have == want {
			want = "another"
		}
		detail = fmt.Sprintf("%s has %s, wanted is %s", m.holder(other, "the pod"), have, want)
	}
	m.conflicts = append(m.conflicts, fmt.Sprintf("%s: %s: %s (values hidden)", wanted.origin, where, detail))
}

// conflictOn notes that a label or annotation has another value.
func (m *merge) conflictOn(field, key string, c *Compiled, holder string) {
	m.conflicts = append(m.conflicts, fmt.Sprintf("%s: %s %s: %s has another value (values hidden)",
		c, strings.TrimSuffix(field, "s"), key, holder))
}

// envSource says where a variable's value comes from, not what it is.
func envSource(env jsontext.Value) string {
	from := member(env, "valueFrom")
	if from.Kind() != '{' {
		return "a literal value"
	}
	source := "an unknown source"
	r := jsonpatch.NewReader(from)
	r.Object(func(name []byte) {
		if strings.HasSuffix(string(name), "Ref") {
			source = "a " + string(name)
		}
	})
	return source
}

func member(object jsontext.Value, name string) jsontext.Value {
	value, _ := jsonpatch.Lookup(object, name)
	return value
}

// denial is the answer to a pod with conflicts. Its beginning is what clients of
// the webhook that this one replaces look for.
func (m *merge) denial() *admission.Response {
	conflicts := strings.Join(m.conflicts, "; ")
	resp := admission.BadRequest(
		"conflict occurred while applying poddefaults: %s on pod: %s err: %s. Change the pod or a PodDefault, "+
			"or exclude the pod with the annotation %s: \"true\"",
		names(m.applied), m.pod.name, conflicts, ExcludeAnnotation)
	return resp.Warn(m.warnings...)
}
