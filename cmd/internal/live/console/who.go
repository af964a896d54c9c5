// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/carried/references"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// maxBringers limits the objects on the page.
const maxBringers = 100

// showWho searches what brings something to pods.
func showWho(ctx context.Context, v *visit) (templ.Component, error) {
	kind, text := v.FormValue("kind"), v.FormValue("text")
	if kind == "" {
		return whoPage(v, nil, false), nil
	}
	if !slices.Contains(references.Kinds, kind) {
		return nil, fmt.Errorf("%w: the kind is %q: choose one of the list", explain.ErrBadInput, manifest.Printable(kind))
	}
	what := "list PodDefaults of all namespaces. The search is in " + v.cluster.Namespace + ": choose another one"
	found, err := inAll(v, what, func(namespace string) ([]*carried.Bringer, error) {
		return carried.Bringers(ctx, v.cluster, namespace, kind, text, &v.notes)
	})
	if errors.Is(err, injection.ErrNoPodDefaults) {
		return nothing(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	v.data = broughtOf(found)
	return whoPage(v, found, true), nil
}

// A brought is an object that brings something, for those who ask for JSON.
type brought struct {
	Object string            `json:"object"`
	Places []string          `json:"places"`
	Pods   []carried.Carrier `json:"pods"`
}

func broughtOf(found []*carried.Bringer) []brought {
	out := []brought{}
	for _, b := range found {
		out = append(out, brought{b.Title(), b.Places, b.Pods})
	}
	return out
}

// reachOf draws what is brought by which object to which pods.
func reachOf(kind string, found []*carried.Bringer) string {
	var things, objects, pods []draw.Node
	var left, right []draw.Edge
	seen := map[string]int{}
	node := func(list *[]draw.Node, key, text, class string) int {
		if _, known := seen[key]; !known {
			seen[key] = len(*list)
			*list = append(*list, draw.Node{Text: text, Class: class})
		}
		return seen[key]
	}
	for i, b := range found {
		objects = append(objects, draw.Node{Text: b.Title()})
		for _, place := range b.Places {
			_, name, _ := strings.Cut(place, ": ")
			scope := b.Namespace
			if scope == "" {
				scope = "the pod's namespace"
			}
			left = append(left, draw.Edge{From: node(&things, kind+"/"+scope+"/"+name, name+" in "+scope, "quiet"), To: i})
		}
		for _, pod := range b.Pods {
			class := "ok"
			if !pod.Current {
				class = "note"
			}
			right = append(right, draw.Edge{From: i, To: node(&pods, "pod/"+pod.Namespace+"/"+pod.Name, pod.Namespace+"/"+pod.Name, class), Class: class})
		}
	}
	if len(found) == 0 {
		return ""
	}
	return draw.Map("What each "+kind+" reaches", []string{kind + "s", "PodDefaults", "Pods"}, [][]draw.Node{things, objects, pods}, [][]draw.Edge{left, right})
}

// editLink is the page on which an object can be edited.
func (v *visit) editLink(o *manifest.Object) string {
	if o.Namespace == "" {
		return v.link("try", "type", o.Kind, "name", o.Name)
	}
	return v.link("try", "type", o.Kind, "name", o.Name, "namespace", o.Namespace)
}
