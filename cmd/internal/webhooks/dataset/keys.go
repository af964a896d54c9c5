// SPDX-License-Identifier: Apache-2.0

package dataset

// optInLabels are the labels, with value "true", that opt a pod in. The definitions'
// selectors and the handler share this list.
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
	// ServerfulLabel requests scheduling by Datasets.
	ServerfulLabel = "fuse.serverful.fluid.io/inject"
	// ServerlessLabel requests sidecars that mount Datasets. It takes precedence over
	// ServerfulLabel.
	ServerlessLabel = "serverless.fluid.io/inject"
	// SidecarLabel is the former name of ServerlessLabel.
	SidecarLabel = "fuse.sidecar.fluid.io/inject"
	// InjectionLabel on a namespace enables the older mode. "false" on a pod is an
	// opt-out in every mode.
	InjectionLabel = "fluid.io/enable-injection"
	// UnprivilegedLabel requests sidecars without privileges. It is a serverless opt-in
	// only together with ServerlessLabel.
	UnprivilegedLabel = "unprivileged.sidecar.fluid.io/inject"
	// DoneLabel records that sidecars were added.
	DoneLabel = "done.sidecar.fluid.io/inject"
	// managedByLabel is on objects created by Fluid. On a claim its value is the name
	// of the Dataset.
	managedByLabel = "fluid.io/managed-by"
	// wrappedByLabel is the former name of managedByLabel on claims.
	wrappedByLabel = "fluid.io/wrapped-by"
	// cachePrefix is the prefix of the label of a Dataset's claims and volumes, and of
	// nodes with some of its cache.
	cachePrefix = "fluid.io/s-"
	// fusePrefix is the prefix of the label of nodes where a pod mounts the Dataset.
	fusePrefix = "fluid.io/f-"
	// datasetNumLabel on a node with cache is the number of cached Datasets.
	datasetNumLabel = "fluid.io/dataset-num"
)

// Names of localities in the arguments of NodeAffinityWithCache that stand for a label
// per Dataset.
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
