// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const everyReference = `{"spec":{
  "volumes":[{"name":"s","secret":{"secretName":"token"}},{"name":"p","projected":{"sources":[{"secret":{"name":"token-2"}},{"configMap":{"name":"settings"}}]}},
    {"name":"data","persistentVolumeClaim":{"claimName":"data-claim"}},{"name":"model","image":{"reference":"registry/model"}},{"name":"csi","csi":{"nodePublishSecretRef":{"name":"token-3"}}}],
  "env":[{"name":"A","value":"token","valueFrom":{"secretKeyRef":{"name":"token-4","key":"k"}}},{"name":"B","valueFrom":{"configMapKeyRef":{"name":"settings-2","key":"k"}}}],
  "envFrom":[{"secretRef":{"name":"token-5"}},{"configMapRef":{"name":"settings-3"}}],
  "imagePullSecrets":[{"name":"token-6"}],"serviceAccountName":"robot","sidecars":[{"name":"mesh","image":"registry/mesh"}],
  "labels":{"image":"registry/not","secretName":"token-not"},"annotations":{"serviceAccountName":"not"}}}`

func TestEachReferenceOfAPodDefaultIsFound(t *testing.T) {
	for _, tc := range []struct {
		kind, text string
		want       []string
	}{
		{Secret, "token", []string{
			"spec.env[A].valueFrom.secretKeyRef.name: token-4", "spec.envFrom[0].secretRef.name: token-5", "spec.imagePullSecrets[token-6].name: token-6",
			"spec.volumes[s].secret.secretName: token", "spec.volumes[p].projected.sources[0].secret.name: token-2", "spec.volumes[csi].csi.nodePublishSecretRef.name: token-3",
		}},
		{ConfigMap, "settings", []string{"spec.env[B].valueFrom.configMapKeyRef.name: settings-2", "spec.envFrom[1].configMapRef.name: settings-3", "spec.volumes[p].projected.sources[1].configMap.name: settings"}},
		{Image, "", []string{"spec.sidecars[mesh].image: registry/mesh", "spec.volumes[model].image.reference: registry/model"}},
		{ServiceAccount, "rob", []string{"spec.serviceAccountName: robot"}},
		{Volume, "data", []string{"spec.volumes[data].name: data", "spec.volumes[data].persistentVolumeClaim.claimName: data-claim"}},
		{Secret, "none", nil},
	} {
		if diff := cmp.Diff(tc.want, In([]byte(everyReference), tc.kind, tc.text)); diff != "" {
			t.Errorf("%s %s: %s", tc.kind, tc.text, diff)
		}
	}
}

func FuzzReferences(f *testing.F) {
	f.Add(everyReference, "t")
	f.Fuzz(func(t *testing.T, raw, text string) {
		if !json.Valid([]byte(raw)) {
			return
		}
		for _, kind := range Kinds {
			found, all := In([]byte(raw), kind, text), In([]byte(raw), kind, "")
			for _, place := range found {
				if !strings.Contains(place, text) || !slices.Contains(all, place) {
					t.Errorf("%s %q: %s, of %q", kind, text, place, all)
				}
			}
		}
	})
}
