// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Containers that PodDefaults add get nothing from other PodDefaults unless those
// select them with a containerSelector, because that was the behaviour before it
// existed. Where that is most likely unintended, there is a warning.

// proxies are variables for every process. Programs read them in either case.
var proxies = []string{
	"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "all_proxy", "http_proxy", "https_proxy", "no_proxy",
}

var reference = regexp.MustCompile(`\$\(([^()"\\]+)\)`)

// asked returns the variables that a container most likely needs, sorted: those that
// configure proxies, and those it refers to.
func asked(container jsontext.Value) []string {
	names := slices.Clone(proxies)
	if !refers(container) {
		return names
	}
	for _, m := range reference.FindAllSubmatch(container, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func refers(container jsontext.Value) bool { return bytes.Contains(container, []byte("$(")) }

// hasProxies reports whether the object sets proxies in containers.
func (c *Compiled) hasProxies() bool {
	return slices.ContainsFunc(c.env, func(w item) bool { return slices.Contains(proxies, w.key) })
}

// givers returns, by variable, the objects that set it in the pod's own containers
// without an explicit restriction to them.
func givers(objects []*Compiled) map[string][]*Compiled {
	out := map[string][]*Compiled{}
	for _, c := range objects {
		if c.target == nil {
			for i := range c.env {
				out[c.env[i].key] = append(out[c.env[i].key], c)
			}
		}
	}
	return out
}

// withheld returns warnings about variables that a container does not get from other
// objects, in their order. There are none if finding out is too expensive.
func withheld(b *bounds, givers map[string][]*Compiled, name string, raw jsontext.Value, env *list) (warnings []string) {
	if b.did(len(raw)); b.spent() {
		return nil
	}
	var from []*Compiled
	lacks := map[*Compiled][]string{}
	for _, variable := range asked(raw) {
		if there, _ := env.find(variable); there != nil {
			continue
		}
		for _, c := range givers[variable] {
			if b.did(workOfVisit + len(c.containers) + len(c.initContainers)); b.spent() {
				return nil
			}
			if c.brings(name) {
				continue
			}
			if lacks[c] == nil {
				from = append(from, c)
			}
			lacks[c] = append(lacks[c], variable)
		}
	}
	slices.SortFunc(from, inOrder)
	for _, c := range from {
		warnings = append(warnings, fmt.Sprintf("%s does not give %s to container %s, which another PodDefault brings; "+
			"with containerSelector.types [Container, Injected] it does, with [Container] that is meant", c, strings.Join(lacks[c], ", "), name))
	}
	return warnings
}

func (c *Compiled) brings(container string) bool {
	named := func(w item) bool { return w.key == container }
	return slices.ContainsFunc(c.containers, named) || slices.ContainsFunc(c.initContainers, named)
}

// Withheld returns warnings about variables that one of two objects does not set in the
// other's containers, although these most likely need them.
func Withheld(a, b *Compiled) (warnings []string) {
	if a.problem != nil || b.problem != nil || a.audit || b.audit || a.alternative(b) || exclusive(a, b) {
		return nil
	}
	within := newBounds(context.Background())
	for _, pair := range [][2]*Compiled{{a, b}, {b, a}} {
		brought := slices.Concat(pair[1].initContainers, pair[1].containers)
		if len(brought) == 0 {
			continue
		}
		from := givers(pair[:1])
		for _, w := range brought {
			warnings = append(warnings, withheld(&within, from, w.key, w.value, &list{kind: envKind, raw: member(w.value, "env"), bounds: &within})...)
		}
	}
	return warnings
}

// warnOfWithheld warns of variables that added containers lack.
func (m *merge) warnOfWithheld() {
	if len(m.injected.list) == 0 {
		return
	}
	b := m.pod.bounds.another() // exceeding the limits here does not deny the pod
	proxied := slices.ContainsFunc(m.applied, func(c *Compiled) bool { return c.proxies && c.target == nil })
	var from map[string][]*Compiled
	for t := range m.containers() {
		if (proxied || refers(t.raw)) && m.isInjected(t.name) && !slices.Contains(m.settings.MeshContainers, t.name) {
			if from == nil {
				from = givers(m.applied)
			}
			for _, warning := range withheld(&b, from, t.name, t.raw, &t.env) {
				m.warn("%s", warning)
			}
		}
	}
}
