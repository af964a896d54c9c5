// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestFieldsBecomeAFile(t *testing.T) {
	folder := t.TempDir()
	given := filepath.Join(folder, "given.yaml")
	if err := os.WriteFile(given, []byte("serving: {drainMin: 1s}\nwebhooks: [{name: imagepull}, {name: poddefault, settings: {guard: Fail}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args, flags []string
		want        string
	}{
		"of its own": {
			[]string{"--a", Set("serving.drainMin", "0s"), Set("webhooks.poddefault.guard", "Fail"), "--b", Set("webhooks.poddefault.guard", "Backstop"), Set("registration.excludedNamespaces", "[]")},
			[]string{"--a", "--b", "--config", filepath.Join(folder, "sallyport.yaml")},
			"{apiVersion: config.sallyport.io/v1alpha1, kind: SallyportConfiguration, registration: {excludedNamespaces: []}, serving: {drainMin: 0s}, webhooks: [{name: poddefault, settings: {guard: Backstop}}]}",
		},
		"that is given": {
			[]string{Set("serving.drainMin", "0s"), Set("serving.drainTimeout", "0s"), Set("webhooks.poddefault.guard", "Backstop"), Set("webhooks.dataset.x", "1"), "--config", given},
			[]string{"--config", given},
			"{apiVersion: config.sallyport.io/v1alpha1, kind: SallyportConfiguration, serving: {drainMin: 1s, drainTimeout: 0s}, webhooks: [{name: imagepull}, {name: poddefault, settings: {guard: Fail}}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			flags, err := Arguments(folder, tc.args...)
			if err != nil || !slices.Equal(flags, tc.flags) {
				t.Fatalf("%v, %v", flags, err)
			}
			data, err := os.ReadFile(flags[len(flags)-1])
			if err != nil {
				t.Fatal(err)
			}
			want, err := yaml.YAMLToJSON([]byte(tc.want))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := yaml.YAMLToJSON(data); err != nil || string(got) != string(want) {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		})
	}
	if flags, err := Arguments(folder, "--a"); err != nil || len(flags) != 1 {
		t.Errorf("without fields: %v, %v", flags, err)
	}
}
