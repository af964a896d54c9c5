// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The types of these tests: the hub v1 has a host and a port, v1alpha1 has both in one string
// and no weight, v2 has other field names.
type (
	hubThing struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`

		Host   string         `json:"host"`
		Port   string         `json:"port"`
		Weight int64          `json:"weight,omitempty"`
		Free   map[string]any `json:"free,omitempty"`
	}
	alphaThing struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`

		HostPort string         `json:"hostPort"`
		Free     map[string]any `json:"free,omitempty"`
	}
	twoThing struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`

		At struct {
			Host string `json:"host"`
			Port string `json:"port"`
		} `json:"at"`
		Weight int64          `json:"weight,omitempty"`
		Free   map[string]any `json:"free,omitempty"`
	}
)

const group = "example.com"

var thing = schema.GroupKind{Group: group, Kind: "Thing"}

func (t *hubThing) DeepCopyObject() runtime.Object   { c := *t; return &c }
func (t *alphaThing) DeepCopyObject() runtime.Object { c := *t; return &c }
func (t *twoThing) DeepCopyObject() runtime.Object   { c := *t; return &c }

func (*hubThing) Hub() {}

const stashed = group + "/weight"

func (t *alphaThing) ConvertTo(dst Hub) error {
	hub := dst.(*hubThing)
	hub.ObjectMeta = t.ObjectMeta
	switch t.HostPort {
	case "fails:1":
		return errors.New("hostPort is not one of ours")
	case "panics:1":
		panic("hunter2 " + t.HostPort)
	case "renames:1":
		hub.Name = "another"
	case "moves:1":
		hub.Namespace = "another"
	case "reissues:1":
		hub.UID = "another"
	case "forgets:1":
		hub.ObjectMeta = metav1.ObjectMeta{}
	case "labels:1":
		hub.Labels = map[string]string{"b": "<2>", "a": "1"}
	case "broken:1":
		hub.Labels = map[string]string{"a": "\xff"}
	case "finalizes:1":
		hub.Finalizers, hub.ResourceVersion = []string{"a"}, "7"
	}
	hub.Host, hub.Port, _ = strings.Cut(t.HostPort, ":")
	hub.Free = t.Free
	Restore(hub, stashed, &hub.Weight)
	return nil
}

func (t *alphaThing) ConvertFrom(src Hub) error {
	hub := src.(*hubThing)
	t.ObjectMeta = hub.ObjectMeta
	t.HostPort = hub.Host + ":" + hub.Port
	t.Free = hub.Free
	if hub.Weight == 0 {
		return nil
	}
	return Stash(t, stashed, hub.Weight)
}

func (t *twoThing) ConvertTo(dst Hub) error {
	hub := dst.(*hubThing)
	hub.ObjectMeta, hub.Host, hub.Port, hub.Weight, hub.Free = t.ObjectMeta, t.At.Host, t.At.Port, t.Weight, t.Free
	return nil
}

func (t *twoThing) ConvertFrom(src Hub) error {
	hub := src.(*hubThing)
	t.ObjectMeta, t.At.Host, t.At.Port, t.Weight, t.Free = hub.ObjectMeta, hub.Host, hub.Port, hub.Weight, hub.Free
	return nil
}

func things(versions ...string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, version := range versions {
		scheme.AddKnownTypeWithName(thing.WithVersion(version), map[string]runtime.Object{
			"v1": &hubThing{}, "v1alpha1": &alphaThing{}, "v2": &twoThing{},
		}[version])
	}
	return scheme
}

var all = []string{"v1", "v1alpha1", "v2"}

// converters returns the same conversion, written in every way.
func converters(tb testing.TB) map[string]Converter {
	tb.Helper()
	scheme := things(all...)
	m := map[string]Converter{
		"hub and spokes": HubAndSpokes[*hubThing](scheme),
		"of a spoke":     ForKind(scheme, &twoThing{}),
		"functions": Functions(scheme,
			NewSpoke(
				func(_ context.Context, spoke *twoThing, hub *hubThing) error { return spoke.ConvertTo(hub) },
				func(_ context.Context, hub *hubThing, spoke *twoThing) error { return spoke.ConvertFrom(hub) },
			),
			NewSpoke(
				func(_ context.Context, spoke *alphaThing, hub *hubThing) error { return spoke.ConvertTo(hub) },
				func(_ context.Context, hub *hubThing, spoke *alphaThing) error { return spoke.ConvertFrom(hub) },
			)),
		"one function": Objects(scheme, thing, func(_ context.Context, src, dst runtime.Object) error {
			if src.GetObjectKind().GroupVersionKind().Version == dst.GetObjectKind().GroupVersionKind().Version {
				return errors.New("asked for the same version")
			}
			hub, ok := src.(*hubThing)
			if !ok {
				hub = &hubThing{}
				if err := src.(Convertible).ConvertTo(hub); err != nil {
					return err
				}
			}
			if to, ok := dst.(*hubThing); ok {
				meta := to.TypeMeta
				*to = *hub
				to.TypeMeta = meta
				return nil
			}
			return dst.(Convertible).ConvertFrom(hub)
		}),
		"unstructured": Unstructured(thing, all, convertTree),
	}
	for name, converter := range m {
		if err := converter.Problems(); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	return m
}

func convertTree(_ context.Context, object *unstructured.Unstructured, version string) error {
	content := object.Object
	var weight int64
	switch object.GroupVersionKind().Version {
	case "v1alpha1":
		hostPort, _, _ := unstructured.NestedString(content, "hostPort")
		host, port, _ := strings.Cut(hostPort, ":")
		switch host {
		case "fails":
			return errors.New("hostPort is not one of ours")
		case "panics":
			panic("hunter2 " + hostPort)
		case "renames":
			object.SetName("another")
		case "moves":
			object.SetNamespace("another")
		case "reissues":
			object.SetUID("another")
		case "forgets":
			delete(content, "metadata")
		case "labels":
			object.SetLabels(map[string]string{"b": "<2>", "a": "1"})
		case "broken":
			object.SetLabels(map[string]string{"a": "\xff"})
		case "finalizes":
			object.SetFinalizers([]string{"a"})
			object.SetResourceVersion("7")
		}
		delete(content, "hostPort")
		content["host"], content["port"] = host, port
		if Restore(object, stashed, &weight) && weight != 0 {
			content["weight"] = weight
		}
	case "v2":
		at, _, _ := unstructured.NestedStringMap(content, "at")
		content["host"], content["port"] = at["host"], at["port"]
		delete(content, "at")
	}
	switch version {
	case "v1alpha1":
		content["hostPort"] = fmt.Sprintf("%s:%s", content["host"], content["port"])
		weight, _ = content["weight"].(int64)
		delete(content, "weight")
		delete(content, "host")
		delete(content, "port")
		if weight != 0 {
			return Stash(object, stashed, weight)
		}
	case "v2":
		content["at"] = map[string]any{"host": content["host"], "port": content["port"]}
		delete(content, "host")
		delete(content, "port")
	}
	return nil
}
