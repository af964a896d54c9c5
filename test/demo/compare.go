// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// party is who put a line into the stored pod.
type party int

const (
	sender    party = iota // it is as the user sent it
	apiServer              // the API server adds or changes it on every pod
	webhook                // only there because of Sallyport
)

// line is a line of the stored pod as YAML.
type line struct {
	column  int // of indentation
	text    string
	by      party
	removed bool     // it is no longer there
	sources []string // the PodDefaults that asked for it, on the first line of what was added
}

// addition is one thing that a webhook added to the pod.
type addition struct {
	sources []string
	where   string // "pod", or the name of a container
	what    string // "volume gcp-credentials"
}

// comparison tells apart what three parties did to one pod: what the user sent,
// what the API server alone makes of that, and what it stored with the webhook.
type comparison struct {
	lines     []line
	additions []addition
	// unexplained are paths that the webhook changed, and no PodDefault asked for.
	unexplained []string

	podDefaults []map[string]any
}

func compare(sent, alone, stored map[string]any, podDefaults []map[string]any) *comparison {
	c := &comparison{podDefaults: podDefaults}
	c.lines = c.members(position{}, tidy(sent), tidy(alone), tidy(stored), sender)
	return c
}

// changedBy counts the lines that a party added or removed.
func (c *comparison) changedBy(who party) int {
	n := 0
	for _, l := range c.lines {
		if l.by == who && who != sender {
			n++
		}
	}
	return n
}

// position is where a value stands in the pod.
type position struct {
	path      string // of field names, "spec.containers.env"; elements of a list have the path of the list
	container string
	explained bool // an enclosing value is already said to come from a PodDefault
}

func (p position) field(name string) position {
	if p.path != "" {
		name = p.path + "." + name
	}
	p.path = name
	return p
}

// tidy returns a copy of a pod without what differs between any two pods: the
// server's bookkeeping, the status and the random name of the token volume.
func tidy(pod map[string]any) map[string]any {
	data, err := json.Marshal(pod)
	if err != nil {
		return pod
	}
	data = tokenVolume.ReplaceAll(data, []byte(`"kube-api-access-…"`))
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		return pod
	}
	delete(out, "status")
	if meta, ok := out["metadata"].(map[string]any); ok {
		for _, name := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
			delete(meta, name)
		}
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			delete(annotations, excludeAnnotation)
			if len(annotations) == 0 {
				delete(meta, "annotations")
			}
		}
	}
	return out
}

var tokenVolume = regexp.MustCompile(`"kube-api-access-[a-z0-9]{5}"`)

// members renders an object: first what is the user's or the webhook's, then what
// the API server fills in, so that the latter stays together.
func (c *comparison) members(at position, sent, alone, stored map[string]any, by party) []line {
	names := map[string]bool{}
	for _, m := range []map[string]any{sent, alone, stored} {
		for name := range m {
			names[name] = true
		}
	}
	var first, last []line
	for _, name := range slices.SortedFunc(maps.Keys(names), nameFirst) {
		was, inSent := sent[name]
		would, inAlone := alone[name]
		is, inStored := stored[name]
		here := at.field(name)
		if !inStored {
			who := apiServer
			if inAlone {
				who, was = webhook, would
				c.unexplained = append(c.unexplained, here.path+" was removed")
			}
			first = append(first, removedLines(map[string]any{name: was}, who)...)
			continue
		}
		who := presence(inSent, inAlone, by)
		rendered := c.member(here, name, was, inSent, would, inAlone, is, who)
		if who == apiServer && !slices.ContainsFunc(rendered, func(l line) bool { return l.by == webhook }) {
			last = append(last, rendered...)
		} else {
			first = append(first, rendered...)
		}
	}
	return append(first, last...)
}

// nameFirst orders the members of an object for reading.
func nameFirst(a, b string) int {
	if (a == "name") != (b == "name") {
		if a == "name" {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

// presence is who put something there, given who put its parent there.
func presence(inSent, inAlone bool, parent party) party {
	switch {
	case inSent:
		return sender
	case inAlone:
		return apiServer
	case parent == sender:
		return webhook
	default:
		return max(parent, webhook)
	}
}

func (c *comparison) member(at position, name string, was any, inSent bool, would any, inAlone bool, is any, by party) []line {
	at, sources := c.explain(at, is, by)
	var lines []line
	switch value := is.(type) {
	case map[string]any:
		if len(value)+len(object(was))+len(object(would)) == 0 {
			lines = []line{{text: name + ": {}", by: by}}
			break
		}
		lines = append([]line{{text: name + ":", by: by}}, indent(c.members(at, object(was), object(would), value, by))...)
	case []any:
		if len(value)+len(list(was))+len(list(would)) == 0 {
			lines = []line{{text: name + ": []", by: by}}
			break
		}
		lines = append([]line{{text: name + ":", by: by}}, indent(c.elements(at, list(was), list(would), value, by))...)
	default:
		lines = c.scalar(at, name+": ", was, inSent, would, inAlone, value, by)
	}
	if len(sources) > 0 {
		lines[0].sources = sources
	}
	return lines
}

func (c *comparison) scalar(at position, prefix string, was any, inSent bool, would any, inAlone bool, is any, by party) []line {
	now := line{text: prefix + scalar(is), by: by}
	if !inSent && !inAlone || inSent && reflect.DeepEqual(was, is) {
		return []line{now}
	}
	if inAlone && reflect.DeepEqual(would, is) {
		now.by = apiServer
	} else {
		now.by = webhook
		_, now.sources = c.explain(at, is, webhook)
	}
	if !inSent {
		was = would
	}
	if reflect.DeepEqual(was, is) {
		return []line{now}
	}
	return []line{{text: prefix + scalar(was), by: now.by, removed: true}, now}
}

// elements renders a list. Elements are the same if their merge key is.
func (c *comparison) elements(at position, sent, alone, stored []any, by party) []line {
	before, without := index(at.path, sent), index(at.path, alone)
	var first, last []line
	for _, is := range stored {
		key := mergeKey(at.path, is)
		was, inSent := before[key]
		would, inAlone := without[key]
		delete(before, key)
		delete(without, key)
		who := presence(inSent, inAlone, by)
		here := at
		if at.path == "spec.containers" || at.path == "spec.initContainers" {
			here.container, _ = object(is)["name"].(string)
		}
		here, sources := c.explain(here, is, who)
		var rendered []line
		if value, ok := is.(map[string]any); ok && len(value) > 0 {
			rendered = indent(c.members(here, object(was), object(would), value, who))
			rendered[0].text = "- " + rendered[0].text
			rendered[0].column -= 2
		} else {
			rendered = []line{{text: "- " + scalar(is), by: who}}
		}
		if len(sources) > 0 {
			rendered[0].sources = sources
		}
		if who == apiServer {
			last = append(last, rendered...)
		} else {
			first = append(first, rendered...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(without)) {
		c.unexplained = append(c.unexplained, "an element of "+at.path+" was removed")
		first = append(first, removedLines([]any{without[key]}, webhook)...)
		delete(before, key)
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		first = append(first, removedLines([]any{before[key]}, apiServer)...)
	}
	return append(first, last...)
}

// explain names the PodDefaults that asked for a value that the webhook put there.
func (c *comparison) explain(at position, value any, by party) (position, []string) {
	if by != webhook || at.explained {
		return at, nil
	}
	what, sources := c.sourcesOf(at.path, value)
	if what == "" { // a container of values that are explained one by one
		return at, nil
	}
	at.explained = true
	where := "pod"
	if at.container != "" && at.path != "spec.containers" && at.path != "spec.initContainers" {
		where = at.container
	}
	if len(sources) == 0 {
		c.unexplained = append(c.unexplained, fmt.Sprintf("%s: %s was added", where, what))
	}
	c.additions = append(c.additions, addition{sources: sources, where: where, what: what})
	return at, sources
}

// removedLines renders what is no longer there: an object with one member, or a
// list with one element.
func removedLines(fragment any, by party) []line {
	var lines []line
	text, err := yaml.Marshal(fragment)
	if err != nil {
		text = fmt.Append(nil, fragment)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		lines = append(lines, line{text: part, by: by, removed: true})
	}
	return lines
}

func indent(lines []line) []line {
	for i := range lines {
		lines[i].column += 2
	}
	return lines
}

func object(value any) map[string]any { m, _ := value.(map[string]any); return m }
func list(value any) []any            { l, _ := value.([]any); return l }

func scalar(value any) string {
	if text, ok := value.(string); ok && strings.ContainsAny(text, "\n\r") {
		quoted, _ := json.Marshal(text) // a string has no error
		return string(quoted)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(string(text), "\n")
}
