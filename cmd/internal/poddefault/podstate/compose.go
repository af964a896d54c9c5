// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Compose merges what other objects add into a container that a PodDefault adds. Its
// bytes are not the user's, so it may be re-encoded.
func (c *Container) Compose() jsontext.Value {
	lists := c.ownLists()
	changed := len(c.Values) > 0
	for _, l := range lists {
		changed = changed || len(l.Added)+len(l.Replaced) > 0
	}
	tree, ok := plan.Decode(c.Raw).(map[string]any)
	if !changed || !ok {
		return c.Raw
	}
	for _, l := range lists {
		if len(l.Added)+len(l.Replaced) == 0 {
			continue
		}
		object := below(tree, l.Tokens[:len(l.Tokens)-1])
		name := l.Tokens[len(l.Tokens)-1]
		elements, _ := object[name].([]any)
		for _, r := range l.Replaced {
			elements[r.Index] = plan.Decode(r.Value)
		}
		for _, added := range l.Added {
			elements = append(elements, plan.Decode(added.Value))
		}
		object[name] = elements
	}
	for _, v := range c.Values {
		if !v.There {
			below(tree, v.Tokens[:len(v.Tokens)-1])[v.Tokens[len(v.Tokens)-1]] = plan.Decode(v.Value)
		}
	}
	out, err := json.Marshal(tree)
	if err != nil { // a decoded value can be encoded
		return c.Raw
	}
	return out
}

// ownLists returns all lists of the container that may grow.
func (c *Container) ownLists() []*heldList {
	lists := []*heldList{
		{[]string{"env"}, c.Env}, {[]string{"envFrom"}, c.EnvFrom}, {[]string{"volumeMounts"}, c.VolumeMounts},
	}
	return append(lists, c.Lists...)
}

// below returns the object at the names and creates it if missing.
func below(tree map[string]any, names []string) map[string]any {
	for _, name := range names {
		next, ok := tree[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[name] = next
		}
		tree = next
	}
	return tree
}
