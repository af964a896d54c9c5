// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// supported are the kinds whose pods follow from the object alone.
var supported = []string{
	"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Notebook", "MPIJob", "JobSet",
}

// Settings configure which workloads are reviewed.
type Settings struct {
	// kinds are the kinds of workloads that are reviewed, of Deployment, StatefulSet,
	// DaemonSet, ReplicaSet, ReplicationController, Job, CronJob, Notebook (kubeflow.org/v1),
	// MPIJob (kubeflow.org/v2beta1) and JobSet. Default Deployment, StatefulSet, DaemonSet,
	// ReplicaSet, Job, CronJob and Notebook.
	Kinds []string `json:"kinds"`
	// resources are custom resources of other kinds with pod templates. A template is any
	// object that is named template or has metadata, with a spec with containers. Labels
	// that their controllers add to pods are not known.
	Resources []Resource `json:"resources,omitempty"`
}

// Resource is a custom resource.
type Resource struct {
	// group is its API group.
	Group string `json:"group"`
	// version is the version in which it is reviewed.
	Version string `json:"version"`
	// resource is its plural name.
	Resource string `json:"resource"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Kinds: []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Notebook"}}
}

// Validate reports all problems, by the names of the fields in a file.
func (s Settings) Validate() error {
	var errs field.ErrorList
	if len(s.Kinds)+len(s.Resources) == 0 {
		errs = append(errs, field.Required(field.NewPath("kinds"), "no workload is reviewed: name kinds or resources"))
	}
	for i, kind := range s.Kinds {
		at := field.NewPath("kinds").Index(i)
		if !slices.Contains(supported, kind) {
			errs = append(errs, field.NotSupported(at, kind, supported))
		}
		if slices.Contains(s.Kinds[:i], kind) {
			errs = append(errs, field.Duplicate(at, kind))
		}
	}
	for i, r := range s.Resources {
		at := field.NewPath("resources").Index(i)
		for _, part := range []struct {
			name, value string
			check       func(string) []string
		}{{"group", r.Group, validation.IsDNS1123Subdomain}, {"version", r.Version, validation.IsDNS1035Label}, {"resource", r.Resource, validation.IsDNS1035Label}} {
			if part.value == "" {
				errs = append(errs, field.Required(at.Child(part.name), "name the group, the version and the plural name of a custom resource"))
				continue
			}
			for _, problem := range part.check(part.value) {
				errs = append(errs, field.Invalid(at.Child(part.name), part.value, problem))
			}
		}
		if slices.Contains(s.Resources[:i], r) {
			errs = append(errs, field.Duplicate(at, r.Resource))
		}
		if kind := r.known(); kind != "" {
			errs = append(errs, field.Invalid(at, r.Resource, "its pods are known: add "+kind+" to kinds"))
		}
	}
	return errs.ToAggregate()
}

// known returns the supported kind of a resource in any version, or "".
func (r Resource) known() string {
	for _, kind := range supported {
		if known := resourceOf(kind); known.Group == r.Group && known.Resource == r.Resource {
			return kind
		}
	}
	return ""
}

// resourceOf returns the resource of a supported kind.
func resourceOf(kind string) metav1.GroupVersionResource {
	for _, k := range workload.Kinds() {
		if gv, err := schema.ParseGroupVersion(k.GroupVersion); err == nil && k.Name == kind {
			return metav1.GroupVersionResource(gv.WithResource(k.Resource))
		}
	}
	return metav1.GroupVersionResource{}
}

// resources returns all resources that are reviewed.
func (s Settings) resources() (out []metav1.GroupVersionResource) {
	for _, kind := range s.Kinds {
		out = append(out, resourceOf(kind))
	}
	for _, r := range s.Resources {
		out = append(out, metav1.GroupVersionResource(r))
	}
	return out
}
