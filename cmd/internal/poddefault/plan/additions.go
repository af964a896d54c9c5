// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Additions are what an object adds to pods.
type Additions struct {
	Unreadable error               // a fault: additions unknown
	MarkKey    string              // annotation for an applied object
	Marks      jsonpatch.Operation // adds it to a pod that has annotations

	Env, EnvFrom, VolumeMounts        []Item
	TrailingSlash                     []string // of the volumeMounts' paths, see [trailingSlash]
	Volumes, Tolerations, PullSecrets []Item
	InitContainers, Containers        []Item
	Annotations                       []podmeta.Entry
	StrayMounts                       []string // volumes used here but not part of the object

	// Fields that most pods are not read for.
	Target                     *kubeflowv1alpha1.ContainerSelector
	positions                  []kubeflowv1alpha1.ContainerPosition
	PodLists, ContainerLists   []FieldList
	PodValues, ContainerValues []FieldValue
	NodeTerms                  []jsontext.Value
	Resources                  []Quantity
	Clashes                    bool                             // see clashes.go
	Template                   *kubeflowv1alpha1.PodDefaultSpec // to fill in for each pod
}

// An Item is one element of a list of the pod.
type Item struct {
	Key    string // merge key, see listKind
	Value  jsontext.Value
	Origin *Plan // nil for the pod's own
}

// Position returns where the object wants its container, or nil for no preference.
func (a *Additions) Position(name string) *kubeflowv1alpha1.ContainerPosition {
	for i := range a.positions {
		if a.positions[i].Name == name {
			return &a.positions[i]
		}
	}
	return nil
}

// AddsContainer reports whether the object adds a container, or an init container, with this name.
func (a *Additions) AddsContainer(name string) bool {
	named := func(i Item) bool { return i.Key == name }
	return slices.ContainsFunc(a.Containers, named) || slices.ContainsFunc(a.InitContainers, named)
}

// ReachesContainers reports whether the object adds what the containers of a mesh do not get.
func (a *Additions) ReachesContainers() bool {
	return len(a.Env)+len(a.EnvFrom)+len(a.VolumeMounts)+len(a.ContainerLists)+len(a.Resources) > 0 ||
		slices.ContainsFunc(a.ContainerValues, func(f FieldValue) bool { return !f.Rule.Command })
}

// EachList calls visit for each list of the object. Its id is unique.
func (a *Additions) EachList(visit func(id string, kind *ListKind, items []Item)) {
	visit(EnvList, EnvKind, a.Env)
	visit(EnvFromList, EnvFromKind, a.EnvFrom)
	visit(MountList, MountKind, a.VolumeMounts)
	visit(VolumeList, VolumeKind, a.Volumes)
	visit(TolerationList, TolerationKind, a.Tolerations)
	visit(PullSecretList, PullSecretKind, a.PullSecrets)
	visit(InitContainersList, ContainerKind, a.InitContainers)
	visit(ContainersList, ContainerKind, a.Containers)
	for _, lists := range [][]FieldList{a.PodLists, a.ContainerLists} {
		for i := range lists {
			visit(lists[i].ID, lists[i].Kind, lists[i].Items)
		}
	}
}
