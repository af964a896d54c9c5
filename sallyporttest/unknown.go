// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// probe is a field that no type knows. Each has a distinct value, above the integers that a
// float64 represents exactly.
const (
	probe      = "sallyporttestUnknownField"
	firstProbe = 9007199254740993
)

// checkUnknownFields sends the object with unknown fields and reports those that were lost or
// moved.
func (r *runner) checkUnknownFields(ctx context.Context, c Case, envelope *admissionv1.AdmissionReview, want []byte) {
	if c.RefusesUnknownFields {
		return
	}
	tree, err := decode(envelope.Request.Object.Raw)
	object, ok := tree.(map[string]any)
	if err != nil || !ok {
		r.problem("the object of the review is not a JSON object: %v", err)
		return
	}
	sprinkle(object)
	raw, err := json.Marshal(object)
	if err != nil {
		r.problem("encoding the object with unknown fields: %v", err)
		return
	}
	body, err := about(envelope, raw)
	if err != nil {
		r.problem("encoding the object with unknown fields: %v", err)
		return
	}
	reviewed, err := r.ask(ctx, body)
	switch {
	case err != nil:
		r.problem("with fields that it does not know the webhook is at fault: %v", err)
		return
	case !reviewed.Response.Allowed:
		r.problem("with fields that it does not know it is %s (see RefusesUnknownFields)", outcome(reviewed.Response))
		return
	}
	patched, err := replay.Apply(raw, reviewed.Response.Patch.AppendJSON(nil))
	if err != nil {
		r.problem("with fields that it does not know the patch does not apply: %v", err)
		return
	}
	after, err := decode(patched)
	if err != nil {
		r.problem("with fields that it does not know the patch makes no object: %v", err)
		return
	}
	lost := lostProbes(object, after, "")
	for _, l := range lost {
		r.problem("a field that no type knows %s", l)
	}
	if len(lost) > 0 {
		return
	}
	removeProbes(after)
	without, err := json.Marshal(after)
	if err != nil {
		r.problem("encoding the patched object: %v", err)
		return
	}
	if a, b := pretty(want), pretty(without); a != b {
		r.problem("fields that no type knows make a difference:\n%s", diff("without them", "with them", a, b))
	}
}

// sprinkle adds probes where the API has structs for certain. In maps they would be additional
// entries.
func sprinkle(object map[string]any) {
	next := firstProbe
	add := func(o map[string]any) {
		o[probe] = json.Number(strconv.Itoa(next))
		next++
	}
	var inLists func(value any)
	inLists = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				inLists(value[key])
			}
		case []any:
			for _, element := range value {
				if o, ok := element.(map[string]any); ok {
					inLists(o)
					add(o)
				}
			}
		}
	}
	inLists(object)
	for _, key := range []string{"metadata", "spec", "status"} {
		if o, ok := object[key].(map[string]any); ok {
			add(o)
		}
	}
	add(object)
}

func removeProbes(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, probe)
		for _, v := range value {
			removeProbes(v)
		}
	case []any:
		for _, v := range value {
			removeProbes(v)
		}
	}
}

// lostProbes reports what happened to misplaced probes. A removed list element may take its
// probe with it.
func lostProbes(before, after any, path string) (lost []string) {
	switch before := before.(type) {
	case map[string]any:
		now, ok := after.(map[string]any)
		if !ok {
			return nil // the handler replaced or removed the value
		}
		if id, ok := before[probe]; ok && now[probe] != id {
			lost = append(lost, "is gone from "+place(path))
		}
		for _, key := range slices.Sorted(maps.Keys(before)) {
			lost = append(lost, lostProbes(before[key], now[key], path+"."+key)...)
		}
	case []any:
		now, _ := after.([]any)
		for i, element := range before {
			was, ok := element.(map[string]any)
			if !ok {
				continue
			}
			at := fmt.Sprintf("%s[%d]", path, i)
			same := findElement(now, func(o map[string]any) bool { return identity(o) == identity(was) })
			marked := findElement(now, func(o map[string]any) bool { return o[probe] == was[probe] })
			switch {
			case same == nil && marked == nil: // removed
			case marked == nil:
				lost = append(lost, "is gone from "+place(at))
			case same != nil && marked[probe] != same[probe] && identity(marked) != identity(was):
				lost = append(lost, "of "+place(at)+" is with another element now")
			default:
				lost = append(lost, lostProbes(was, marked, at)...)
			}
		}
	}
	return lost
}

func place(path string) string {
	if path == "" {
		return "the object"
	}
	return path[1:]
}

func findElement(list []any, is func(map[string]any) bool) map[string]any {
	for _, element := range list {
		if o, ok := element.(map[string]any); ok && is(o) {
			return o
		}
	}
	return nil
}

// identity identifies an element of a list: by its name or, without one, its whole content.
func identity(element map[string]any) string {
	if name, ok := element["name"].(string); ok && name != "" {
		return name
	}
	bare, _ := deepCopy(element).(map[string]any)
	removeProbes(bare)
	text, err := json.Marshal(bare)
	if err != nil { // cannot fail: it was decoded from JSON
		return ""
	}
	return string(text)
}

func deepCopy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, v := range value {
			out[k] = deepCopy(v)
		}
		return out
	case []any:
		out := slices.Clone(value)
		for i := range out {
			out[i] = deepCopy(out[i])
		}
		return out
	}
	return value
}
