// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"errors"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/pipeline"
)

// Names of plugins in profiles.
const (
	requireNodeWithFuseName      = "RequireNodeWithFuse"
	nodeAffinityWithCacheName    = "NodeAffinityWithCache"
	preferNodesWithoutCacheName  = "PreferNodesWithoutCache"
	mountPropagationInjectorName = "MountPropagationInjector"
	datasetUsageInjectorName     = "DatasetUsageInjector"
	filePrefetcherName           = "FilePrefetcher"
	fuseSidecarName              = "FuseSidecar"
)

// plugins returns all plugins.
func plugins() pipeline.Registry[*draft] {
	return pipeline.Registry[*draft]{
		requireNodeWithFuseName:      withoutArgs(requireNodeWithFuse),
		nodeAffinityWithCacheName:    newNodeAffinityWithCache,
		preferNodesWithoutCacheName:  withoutArgs(preferNodesWithoutCache),
		mountPropagationInjectorName: withoutArgs(mountPropagationInjector),
		datasetUsageInjectorName:     withoutArgs(datasetUsageInjector),
		filePrefetcherName:           withoutArgs(filePrefetcher),
		fuseSidecarName:              withoutArgs(fuseSidecar),
	}
}

// PluginNames returns the names of all plugins, sorted.
func PluginNames() []string { return plugins().Names() }

// withoutArgs returns a plugin without arguments.
func withoutArgs(mutate pipeline.Func[*draft]) pipeline.Factory[*draft] {
	return func(args string) (pipeline.Plugin[*draft], error) {
		var none any
		if err := yaml.Unmarshal([]byte(args), &none); err != nil {
			return nil, describe(err)
		}
		switch v := none.(type) {
		case nil:
			return mutate, nil
		case map[string]any:
			if len(v) == 0 {
				return mutate, nil
			}
		case string:
			if strings.TrimSpace(v) == "" {
				return mutate, nil
			}
		}
		return nil, errors.New("it takes no arguments: leave them out")
	}
}
