// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A base is a valid PodDefault.
type base struct {
	name string
	spec map[string]any
}

func validPodDefaults(t *testing.T) (out []base) {
	t.Helper()
	data, err := os.ReadFile("../../internal/poddefault/testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var object struct {
			Metadata struct{ Name string }
			Spec     map[string]any
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, base{object.Metadata.Name, object.Spec})
	}
	return out
}

// A change is one place of a valid spec, and what is done there.
type change struct {
	what string
	made func() map[string]any
}

// texts are written where there was another text.
var texts = []string{
	"", "..", "../x", "..x", "a/../b", "/abs", "rel/x", "a b", "A_B", "-x-", "a.b", "a..b", "a=b", "a:b", "a,b", "é", "1", "0", "-1", "1.5", "1500m", "3Mi",
	"true", "localhost/x", "a/b", "a/b/c", "kubernetes.io/a", "requests.cpu", "metadata.labels['a b']", "${namespace}", "${pod.labels['use']}", "$(A)",
	strings.Repeat("a", 16), strings.Repeat("a", 64), strings.Repeat("a", 254), strings.Repeat("a.", 40) + "a", strings.Repeat("a", 5000),
}

var numbers = []any{int64(-1), int64(0), int64(1), int64(2), int64(101), int64(256), int64(512), int64(1024), int64(65536), int64(1) << 31, int64(1) << 33}

// changesOf makes every change to every valid spec.
func changesOf(valid []base) (out []change) {
	// What is there in other places of the same kind may be set too.
	pool := map[string]map[string]any{}
	for _, b := range valid {
		visit(b.spec, "spec", nil, func(place string, _ []any, value any) {
			if fields, ok := value.(map[string]any); ok {
				if pool[kind(place)] == nil {
					pool[kind(place)] = map[string]any{}
				}
				maps.Copy(pool[kind(place)], fields)
			}
		})
	}
	for _, b := range valid {
		visit(b.spec, "spec", nil, func(place string, path []any, value any) {
			add := func(how string, change func(any) any) {
				out = append(out, changeOf(b, place, path, how, change))
			}
			set := func(to any) { add(fmt.Sprintf("= %.40v", to), func(any) any { return to }) }
			if len(path) > 0 {
				out = append(out, removal(b, place, path))
			}
			switch v := value.(type) {
			case string:
				for _, text := range texts {
					if text != v {
						set(text)
					}
				}
				set(v + "x")
				set(strings.ToLower(v))
			case int64, float64:
				for _, number := range numbers {
					set(number)
				}
			case bool:
				set(!v)
			case []any:
				set([]any{})
				add("twice", func(any) any { return append(slices.Clone(v), v...) })
				if len(v) > 0 {
					add("one hundred times", func(any) any { return slices.Repeat(v, 100) })
				}
			case map[string]any:
				if len(path) > 0 {
					set(map[string]any{})
				}
				for _, key := range slices.Sorted(maps.Keys(pool[kind(place)])) {
					if _, there := v[key]; !there {
						add("with "+key, func(any) any { return with(v, key, pool[kind(place)][key]) })
					}
				}
				if freeform.MatchString(place) {
					for _, key := range []string{"", "a b", "a/b/c", "-", "A_b", "example.com/", "kubernetes.io/x", "hugepages-2Mi", "requests.x/y", strings.Repeat("a", 64)} {
						for _, member := range v {
							add(fmt.Sprintf("with the key %.20q", key), func(any) any { return with(v, key, member) })
							break
						}
					}
				}
			}
		})
	}
	return out
}

// freeform are the maps whose keys are their authors'.
var freeform = regexp.MustCompile(`\.(labels|annotations|nodeSelector|matchLabels|requests|limits|options|volumeAttributes|userAnnotations)$`)

var alike = strings.NewReplacer(
	"spec.sidecars[]", "container", "spec.initContainers[]", "container",
	"livenessProbe", "probe", "readinessProbe", "probe", "startupProbe", "probe", "postStart", "hook", "preStop", "hook",
	"podAntiAffinity", "podAffinity",
)

// kind is a place without the numbers of elements, and the same for places of one type.
func kind(place string) string {
	return alike.Replace(indexed.ReplaceAllString(place, "[]"))
}

var indexed = regexp.MustCompile(`\[\d+\]`)

// visit calls f for each value, with the keys and indices that lead to it.
func visit(value any, place string, path []any, f func(place string, path []any, value any)) {
	f(place, slices.Clone(path), value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			visit(v[key], place+"."+key, append(path, key), f)
		}
	case []any:
		for i := range v {
			visit(v[i], fmt.Sprintf("%s[%d]", place, i), append(path, i), f)
		}
	}
}

func with(fields map[string]any, key string, value any) map[string]any {
	out := maps.Clone(fields)
	out[key] = value
	return out
}

func changeOf(b base, place string, path []any, how string, f func(any) any) change {
	return change{what: fmt.Sprintf("%s: %s %s", b.name, place, how), made: func() map[string]any {
		return changed(b.spec, path, f).(map[string]any)
	}}
}

// removal takes away a member or element.
func removal(b base, place string, path []any) change {
	parent, last := path[:len(path)-1], path[len(path)-1]
	return changeOf(b, place, parent, "removed", func(value any) any {
		switch v := value.(type) {
		case map[string]any:
			v = maps.Clone(v)
			delete(v, last.(string))
			return v
		default:
			i := last.(int)
			return slices.Delete(slices.Clone(v.([]any)), i, i+1)
		}
	})
}

// changed copies the value as far as the path leads, and changes what is there.
func changed(value any, path []any, change func(any) any) any {
	if len(path) == 0 {
		return change(value)
	}
	switch v := value.(type) {
	case map[string]any:
		key := path[0].(string)
		return with(v, key, changed(v[key], path[1:], change))
	default:
		list, i := slices.Clone(v.([]any)), path[0].(int)
		list[i] = changed(list[i], path[1:], change)
		return list
	}
}
