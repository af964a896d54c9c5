// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ContainerSelector selects containers by type and name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.first) || !self.first || !has(self.types) || self.types.all(t, t == 'Container')",message="the first container is of type Container; leave others out, or first",fieldPath=".types"
// +kubebuilder:validation:XValidation:rule="!has(self.names) || !has(self.excludeNames) || !self.names.exists(n, n in self.excludeNames)",message="a name stands in excludeNames too",fieldPath=".names"
type ContainerSelector struct {
	// types are the types of containers to select. Default Container, or every type if
	// names is set.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Types []ContainerType `json:"types,omitempty"`

	// first narrows the selection to one container: the first of the pod's own
	// spec.containers that is selected. In a Notebook that is the container of the
	// notebook.
	// +optional
	First bool `json:"first,omitempty"`

	// names are the names of the containers to select, service mesh proxies included. If
	// empty, all containers of the types are selected, except service mesh proxies.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// excludeNames are the names of containers that are not selected.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=63
	ExcludeNames []string `json:"excludeNames,omitempty"`
}

// ContainerType is a type of container in a pod.
//
// +kubebuilder:validation:Enum=Container;InitContainer;Injected
type ContainerType string

// The types of containers. A container that a PodDefault adds is Injected only, whichever
// list it is added to.
const (
	TypeContainer     ContainerType = "Container"     // of spec.containers
	TypeInitContainer ContainerType = "InitContainer" // of spec.initContainers, native sidecars too
	TypeInjected      ContainerType = "Injected"
)

// ContainerPosition defines where a container is inserted. The pod's own containers keep
// their order.
//
// +kubebuilder:validation:XValidation:rule="!(self.place in ['Before', 'After']) || has(self.container) && size(self.container) > 0",message="Before and After refer to a container",fieldPath=".container",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.place in ['Before', 'After'] || !has(self.container) || size(self.container) == 0",message="only Before and After refer to a container",fieldPath=".container"
// +kubebuilder:validation:XValidation:rule="!has(self.container) || self.container != self.name",message="a container cannot be put beside itself",fieldPath=".container"
type ContainerPosition struct {
	// name is the name of a container in sidecars or initContainers of the same object.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// place is First, Last, Before or After.
	// +required
	Place ContainerPlace `json:"place"`

	// container is the name of the container in the same list that Before and After refer
	// to. If the list has no such container, the place is Last, with a warning.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`
}

// ContainerPlace is a place in a list of containers.
//
// +kubebuilder:validation:Enum=First;Last;Before;After
type ContainerPlace string

// The places.
const (
	PlaceFirst  ContainerPlace = "First"
	PlaceLast   ContainerPlace = "Last"
	PlaceBefore ContainerPlace = "Before"
	PlaceAfter  ContainerPlace = "After"
)
