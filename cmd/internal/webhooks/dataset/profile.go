// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/pipeline"
)

// profileKey is the ConfigMap key of a profile.
const profileKey = "pluginsProfile"

// maxProfile limits a profile, in bytes. A ConfigMap has the same limit.
const maxProfile = 1 << 20

// DefaultProfile is Fluid's default profile.
const DefaultProfile = `plugins:
  serverful:
    withDataset:
    - FilePrefetcher
    - RequireNodeWithFuse
    - NodeAffinityWithCache
    - MountPropagationInjector
    - DatasetUsageInjector
    withoutDataset:
    - PreferNodesWithoutCache
  serverless:
    withDataset:
    - FilePrefetcher
    - FuseSidecar
    - DatasetUsageInjector
    withoutDataset: []
pluginConfig:
- name: NodeAffinityWithCache
  args: |
    preferred:
    - name: fluid.io/node
      weight: 100
    - name: topology.kubernetes.io/zone
      weight: 50
    - name: topology.kubernetes.io/region
      weight: 20
    required:
    - fluid.io/node
`

// Profile is Fluid's plugin configuration: the plugins, their order and their
// arguments.
type Profile struct {
	serverful, serverless pipelines
}

// pipelines are the pipelines of one mode.
type pipelines struct{ with, without pipeline.Pipeline[*draft] }

// profileFile has the fields of the file.
type profileFile struct {
	Plugins struct {
		Serverful  profileLists `json:"serverful"`
		Serverless profileLists `json:"serverless"`
	} `json:"plugins"`
	PluginConfig []profileArgs `json:"pluginConfig"`
}

type profileLists struct {
	WithDataset    []string `json:"withDataset"`
	WithoutDataset []string `json:"withoutDataset"`
}

type profileArgs struct {
	Name string `json:"name"`
	Args string `json:"args"`
}

// ParseProfile parses a profile strictly. Unknown fields and plugins, plugins
// configured twice and invalid arguments are errors, which are all reported.
func ParseProfile(text string) (*Profile, error) {
	if len(text) > maxProfile {
		return nil, fmt.Errorf("it has more than %d bytes", maxProfile)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty: no plugin would do anything")
	}
	var file profileFile
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		return nil, describe(err)
	}
	registry := plugins()
	var errs []error
	args := map[string]string{}
	for i, config := range file.PluginConfig {
		at := fmt.Sprintf("pluginConfig[%d]", i)
		if err := registry.Check(config.Name); err != nil {
			errs = append(errs, fmt.Errorf("%s.name: %w", at, err))
			continue
		}
		if slices.ContainsFunc(file.PluginConfig[:i], func(other profileArgs) bool { return other.Name == config.Name }) {
			errs = append(errs, fmt.Errorf("%s.name: %s is configured twice", at, config.Name))
			continue
		}
		// Also for plugins in no list, which may be enabled tomorrow.
		if _, err := registry[config.Name](config.Args); err != nil {
			errs = append(errs, fmt.Errorf("%s.args: %s: %w", at, config.Name, err))
			continue
		}
		args[config.Name] = config.Args
	}
	p := &Profile{}
	for _, list := range []struct {
		field string
		names []string
		into  *pipeline.Pipeline[*draft]
	}{
		{"plugins.serverful.withDataset", file.Plugins.Serverful.WithDataset, &p.serverful.with},
		{"plugins.serverful.withoutDataset", file.Plugins.Serverful.WithoutDataset, &p.serverful.without},
		{"plugins.serverless.withDataset", file.Plugins.Serverless.WithDataset, &p.serverless.with},
		{"plugins.serverless.withoutDataset", file.Plugins.Serverless.WithoutDataset, &p.serverless.without},
	} {
		built, err := registry.Build(list.names, args)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", list.field, err))
		}
		*list.into = built
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Sidecars reports whether any pipeline adds sidecars.
func (p *Profile) Sidecars() bool {
	for _, c := range []pipeline.Pipeline[*draft]{p.serverful.with, p.serverful.without, p.serverless.with, p.serverless.without} {
		if slices.ContainsFunc(c, func(l pipeline.Step[*draft]) bool { return l.Name == fuseSidecarName }) {
			return true
		}
	}
	return false
}

// describe puts errors of the YAML decoder on one line.
func describe(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}

// ProfileIn parses the profile of a ConfigMap with this data.
func ProfileIn(data map[string]string) (*Profile, error) {
	profile, err := ParseProfile(data[profileKey])
	if err != nil {
		err = prefixed(profileKey, err)
	}
	return profile, err
}
