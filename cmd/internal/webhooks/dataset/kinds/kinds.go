// SPDX-License-Identifier: Apache-2.0

// Package kinds names the kinds of objects that the webhook of datasets reads.
package kinds

import "slices"

// Group and Version of Fluid's API.
const (
	Group   = "data.fluid.io"
	Version = "v1alpha1"
)

// Kind is a kind of object that the webhook reads.
type Kind string

// Kinds besides the seven runtimes. DaemonSets and PersistentVolumes are read on
// demand, for sidecars only. Of ConfigMaps, only the one with the profile is read.
const (
	Claim     Kind = "PersistentVolumeClaim"
	Dataset   Kind = "Dataset"
	Volume    Kind = "PersistentVolume"
	DaemonSet Kind = "DaemonSet"
	Profile   Kind = "ConfigMap"
)

// A Runtime is a kind of runtime.
type Runtime struct {
	Kind     Kind
	Resource string
	// Selector is the spec field with the fuse's nodeSelector, or "" if the fuse has
	// none.
	Selector string
	// Fuse is the suffix that makes a runtime's name the name of the fuse's DaemonSet.
	Fuse string
}

// Runtimes maps the type in a Dataset's status.
var Runtimes = map[string]Runtime{
	"alluxio":  {"AlluxioRuntime", "alluxioruntimes", "fuse", "-fuse"},
	"jindo":    {"JindoRuntime", "jindoruntimes", "fuse", "-jindofs-fuse"},
	"juicefs":  {"JuiceFSRuntime", "juicefsruntimes", "fuse", "-fuse"},
	"thin":     {"ThinRuntime", "thinruntimes", "fuse", "-fuse"},
	"efc":      {"EFCRuntime", "efcruntimes", "fuse", "-fuse"},
	"vineyard": {"VineyardRuntime", "vineyardruntimes", "", "-fuse"},
	"cache":    {"CacheRuntime", "cacheruntimes", "client", "-client"},
}

// RuntimeTypes returns the types of runtimes, sorted.
func RuntimeTypes() []string {
	var types []string
	for name := range Runtimes {
		types = append(types, name)
	}
	slices.Sort(types)
	return types
}

// TypeOf returns the runtime type of a kind, or "".
func TypeOf(kind Kind) string {
	for name, k := range Runtimes {
		if k.Kind == kind {
			return name
		}
	}
	return ""
}

// OfFluid returns the kinds of Fluid's API that the webhook reads: Datasets, and runtimes in the
// order of their types.
func OfFluid() []Kind {
	out := []Kind{Dataset}
	for _, name := range RuntimeTypes() {
		out = append(out, Runtimes[name].Kind)
	}
	return out
}

// ResourceOf returns the plural name of a kind of Fluid's API.
func ResourceOf(kind Kind) string {
	if kind == Dataset {
		return "datasets"
	}
	return Runtimes[TypeOf(kind)].Resource
}

// Resources returns the plural names of the Fluid resources that the webhook reads.
func Resources() []string {
	var out []string
	for _, kind := range OfFluid() {
		out = append(out, ResourceOf(kind))
	}
	return out
}

// All returns the kinds that the webhook reads, with their API versions.
func All() map[Kind]string {
	out := map[Kind]string{Claim: "v1", Volume: "v1", Profile: "v1", DaemonSet: "apps/v1"}
	for _, kind := range OfFluid() {
		out[kind] = Group + "/" + Version
	}
	return out
}
