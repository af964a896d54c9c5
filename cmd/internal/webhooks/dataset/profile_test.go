// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestProfilesThatAreWrong(t *testing.T) {
	with := func(args string) string {
		return "plugins: {serverful: {withDataset: [NodeAffinityWithCache]}}\npluginConfig:\n- name: NodeAffinityWithCache\n  args: |\n    " + args + "\n"
	}
	for name, test := range map[string]struct {
		profile string
		want    []string
	}{
		"nothing":                          {" \n", []string{"it is empty"}},
		"no YAML":                          {"{", []string{"yaml"}},
		"a field that is not known":        {"plugins: {serverfull: {}}", []string{`unknown field "serverfull"`}},
		"a field that stands there twice":  {"plugins: {}\nplugins: {}", []string{"plugins"}},
		"a plugin that is not known":       {"plugins: {serverless: {withoutDataset: [Nope]}}", []string{`plugins.serverless.withoutDataset: there is no plugin "Nope": choose among DatasetUsageInjector, FilePrefetcher, FuseSidecar`}},
		"a plugin that stands there twice": {"plugins: {serverful: {withDataset: [FuseSidecar, FuseSidecar]}}", []string{"duplicate plugin FuseSidecar"}},
		"a plugin that is configured twice": {
			"pluginConfig: [{name: FuseSidecar, args: \"\"}, {name: FuseSidecar}]", []string{"pluginConfig[1].name: FuseSidecar is configured twice"}},
		"arguments for one that takes none":     {"pluginConfig: [{name: FuseSidecar, args: 'a: b'}]", []string{"pluginConfig[0].args: FuseSidecar: it takes no arguments"}},
		"an argument that is not known":         {with("prefer: []"), []string{`unknown field "prefer"`}},
		"a weight that is too small or missing": {with("preferred: [{name: a, weight: 0}, {name: b}]"), []string{"preferred[0].weight: 0: a pod's node affinity allows 1 to 100", "preferred[1].weight: 0"}},
		"a weight that is too large":            {with("preferred: [{name: a, weight: 101}]"), []string{"preferred[0].weight: 101"}},
		"names that are not keys":               {with("{preferred: [{name: 'a b', weight: 1}], required: ['']}"), []string{`preferred[0].name: "a b"`, `required[0]: ""`}},
		"names that stand there twice":          {with("{preferred: [{name: a, weight: 1}, {name: a, weight: 2}], required: [a, a]}"), []string{`preferred[1].name: duplicate "a"`, `required[1]: duplicate "a"`}},
		"everything at once":                    {"plugins: {serverful: {withDataset: [A], withoutDataset: [B]}}\npluginConfig: [{name: C}]", []string{`"A"`, `"B"`, `"C"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseProfile(test.profile)
			if err == nil {
				t.Fatal("it is taken")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in\n%v", want, err)
				}
			}
		})
	}
}

// TestTheConfigMapOfFluidIsTaken checks that a profile with comments works unchanged.
func TestTheConfigMapOfFluidIsTaken(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "webhook-plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal(data, &configMap); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{configMap.Data["pluginsProfile"], DefaultProfile} {
		profile, err := ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, link := range profile.serverful.with {
			names = append(names, link.Name)
		}
		if want := []string{"FilePrefetcher", "RequireNodeWithFuse", "NodeAffinityWithCache", "MountPropagationInjector", "DatasetUsageInjector"}; !slices.Equal(names, want) {
			t.Errorf("the plugins are %v", names)
		}
		if len(profile.serverful.without) != 1 || len(profile.serverless.with) != 3 || len(profile.serverless.without) != 0 || !profile.Sidecars() {
			t.Errorf("%+v", profile)
		}
		tiers := profile.serverful.with[2].Plugin.(*nodeAffinityWithCache).tiers
		if tiers.weight(nodeLocality) != 100 || tiers.weight("topology.kubernetes.io/zone") != 50 || tiers.weight("topology.kubernetes.io/region") != 20 || !slices.Equal(tiers.Required, []string{nodeLocality}) {
			t.Errorf("%+v", tiers)
		}
	}
}

func TestVariablesOfFluidsWebhookCount(t *testing.T) {
	settings := DefaultSettings()
	settings.FromEnvironment(func(key string) string {
		return map[string]string{
			"DISABLE_INJECTION": "true", "FILE_PREFETCHER_IMAGE": "p:1", "FUSE_SIDECAR_INJECTION_MODE": "native-sidecar", "KEY_SERVERLESS_PLATFORM": "platform",
		}[key]
	})
	if want := (Settings{RequiredSemantics: RequireAll, Disabled: true, FilePrefetcherImage: "p:1", SidecarMode: NativeSidecar, PlatformLabel: "platform"}); settings != want {
		t.Errorf("got %+v", settings)
	}
}

// FuzzProfile parses anything as a profile. A valid profile has no more plugins than
// exist.
func FuzzProfile(f *testing.F) {
	f.Add(DefaultProfile)
	f.Add("plugins: {serverful: {withDataset: [FuseSidecar, FuseSidecar]}}\npluginConfig: [{name: FuseSidecar, args: 'a: b'}]")
	f.Add("pluginConfig: [{name: NodeAffinityWithCache, args: 'preferred: [{name: a, weight: 1}]'}]")
	f.Fuzz(func(t *testing.T, text string) {
		profile, err := ParseProfile(text)
		if (profile == nil) == (err == nil) {
			t.Fatalf("%+v and %v", profile, err)
		}
		if profile != nil && len(profile.serverful.with) > len(PluginNames()) {
			t.Fatalf("%d plugins", len(profile.serverful.with))
		}
	})
}

func TestTheValuesOfFluidsChartStartTheServer(t *testing.T) {
	for mode, want := range map[string]SidecarMode{"": PlainSidecar, "default": PlainSidecar, "legacy": PlainSidecar, "sidecar": PlainSidecar, "native-sidecar": NativeSidecar, "other": "other"} {
		s := DefaultSettings()
		s.FromEnvironment(func(key string) string {
			if key == "FUSE_SIDECAR_INJECTION_MODE" {
				return mode
			}
			return ""
		})
		if err := s.Validate(); s.SidecarMode != want || (err == nil) != (want != "other") {
			t.Errorf("%q means %q, %v", mode, s.SidecarMode, err)
		}
	}
	for _, mode := range []SidecarMode{"default", "legacy"} { // in the configuration file
		s := DefaultSettings()
		s.SidecarMode = mode
		if err := s.Validate(); err != nil {
			t.Errorf("sidecarMode %q: %v", mode, err)
		}
	}
}
