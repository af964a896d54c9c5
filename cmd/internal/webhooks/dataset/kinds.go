// SPDX-License-Identifier: Apache-2.0

package dataset

// FluidKinds returns the kinds of Fluid's API that the webhook reads: Datasets, and runtimes in the
// order of their types.
func FluidKinds() []Kind {
	out := []Kind{DatasetKind}
	for _, name := range RuntimeTypes() {
		out = append(out, runtimeKinds[name].kind)
	}
	return out
}

// ResourceOf returns the plural name of a kind of Fluid's API.
func ResourceOf(kind Kind) string {
	if kind == DatasetKind {
		return "datasets"
	}
	return runtimeKinds[typeOf(kind)].resource
}

// Resources returns the plural names of the Fluid resources that the webhook reads.
func Resources() []string {
	var out []string
	for _, kind := range FluidKinds() {
		out = append(out, ResourceOf(kind))
	}
	return out
}

// Kinds returns the kinds that the webhook reads, with their API versions.
func Kinds() map[Kind]string {
	out := map[Kind]string{ClaimKind: "v1", VolumeKind: "v1", ProfileKind: "v1", DaemonSetKind: "apps/v1"}
	for _, kind := range FluidKinds() {
		out[kind] = Group + "/" + Version
	}
	return out
}
