// SPDX-License-Identifier: Apache-2.0

package dataset

// optInLabels are those by which a pod asks for the webhook, if they are "true": the one
// list that the selectors of the definitions and the handler go by.
var optInLabels = []optIn{
	{label: ServerfulLabel},
	{label: ServerlessLabel, serverless: true},
	{label: SidecarLabel, serverless: true},
}

type optIn struct {
	label      string
	serverless bool
}

// Labels of pods and namespaces.
const (
	// ServerfulLabel asks for scheduling by datasets.
	ServerfulLabel = "fuse.serverful.fluid.io/inject"
	// ServerlessLabel asks for sidecars that mount datasets; it counts before ServerfulLabel.
	ServerlessLabel = "serverless.fluid.io/inject"
	// SidecarLabel is what ServerlessLabel was called before.
	SidecarLabel = "fuse.sidecar.fluid.io/inject"
	// InjectionLabel is of namespaces in the older mode; "false" on a pod is an opt-out in
	// every mode.
	InjectionLabel = "fluid.io/enable-injection"
	// UnprivilegedLabel asks for sidecars without privileges, and is a serverless opt-in
	// only together with ServerlessLabel.
	UnprivilegedLabel = "unprivileged.sidecar.fluid.io/inject"
	// DoneLabel says that sidecars were added.
	DoneLabel = "done.sidecar.fluid.io/inject"
	// managedByLabel is on what Fluid made of others' objects; on a claim its value is the
	// name of the Dataset.
	managedByLabel = "fluid.io/managed-by"
	// wrappedByLabel is what managedByLabel was called before, on claims.
	wrappedByLabel = "fluid.io/wrapped-by"
	// cachePrefix begins the label of claims and volumes of a Dataset, and of nodes that
	// hold some of its cache.
	cachePrefix = "fluid.io/s-"
	// fusePrefix begins the label of nodes where a pod mounts the Dataset.
	fusePrefix = "fluid.io/f-"
	// datasetNumLabel is on nodes that hold some cache: of how many Datasets.
	datasetNumLabel = "fluid.io/dataset-num"
)

// Names of localities in the arguments of NodeAffinityWithCache that stand for a label
// of each Dataset.
const (
	nodeLocality = "fluid.io/node"
	fuseLocality = "fluid.io/fuse"
)

// Annotations of pods.
const (
	// SkipPrecheckAnnotation admits Datasets that are not bound.
	SkipPrecheckAnnotation = "sidecar.fluid.io/skip-precheck"
	// InUseAnnotation names the Datasets of a pod.
	InUseAnnotation = "fluid.io/datasets-in-use"

	prefetcherPrefix     = "file-prefetcher.fluid.io/"
	prefetcherInject     = prefetcherPrefix + "inject"
	prefetcherDone       = prefetcherPrefix + "inject-done"
	prefetcherImage      = prefetcherPrefix + "image"
	prefetcherFileList   = prefetcherPrefix + "file-list"
	prefetcherAsync      = prefetcherPrefix + "async-prefetch"
	prefetcherTimeout    = prefetcherPrefix + "prefetch-timeout-seconds"
	prefetcherExtraEnvs  = prefetcherPrefix + "extra-envs"
	platformAnnotation   = "serverless.fluid.io/platform"
	hostPathAnnotation   = "default.fuse-sidecar.fluid.io/host-mount-path-mode"
	scrapeAnnotation     = "prometheus.fuse.fluid.io/scrape"
	cacheDirLabel        = "cachedir.sidecar.fluid.io/inject"
	fusePostStartLabel   = "fuse.sidecar.poststart.fluid.io/inject"
	appPostStartLabel    = "app.poststart.fluid.io/inject"
	datasetNameOf        = "dataset-name.sidecar.fluid.io/"
	datasetNamespaceOf   = "dataset-namespace.sidecar.fluid.io/"
	fuseContainer        = "fluid-fuse"
	initFuseContainer    = "init-fluid-fuse"
	prefetcherContainer  = "fluid-file-prefetcher"
	prefetcherStatusName = "fluid-file-prefetcher-status-vol"
	prefetcherStatusPath = "/tmp/fluid-file-prefetcher/status"
)
