// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/test/cases"
)

// newIndex returns the objects of a file.
func newIndex(t testing.TB, cluster []byte) *Index {
	t.Helper()
	index := NewIndex()
	for document := range bytes.SplitSeq(cluster, []byte("\n---\n")) {
		raw, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		ref, object, err := Parse(kinds.Kind(textAt(raw, "kind")), raw)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		index.Set(ref, object)
	}
	return index
}

func newWebhooks(t testing.TB, settings, cluster []byte) []admission.Webhook {
	t.Helper()
	s := DefaultSettings()
	if err := yaml.UnmarshalStrict(settings, &s); err != nil {
		t.Fatal(err)
	}
	webhooks, err := New(newIndex(t, cluster), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks
}

func TestCases(t *testing.T) { cases.Run(t, podResource, newWebhooks) }

func TestSettingsReportEveryProblem(t *testing.T) {
	settings := Settings{
		PluginsProfile: "plugins: {serverful: {withDataset: [NoSuch]}}\npluginConfig: [{name: NoSuchEither}]", PluginsProfileConfigMap: "there",
		RequiredSemantics: "xor", SidecarMode: "none", PlatformLabel: "a b",
	}
	err := settings.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"pluginsProfileConfigMap: Forbidden: the profile stands in pluginsProfile already", `pluginsProfileConfigMap: Invalid value: "there": write NAMESPACE/NAME`, `pluginsProfile: Invalid value: plugins.serverful.withDataset: there is no plugin "NoSuch"`,
		`pluginsProfile: Invalid value: pluginConfig[0].name: there is no plugin "NoSuchEither"`, `requiredSemantics: Unsupported value: "xor"`, `sidecarMode: Unsupported value: "none"`, `platformLabel: Invalid value: "a b"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if _, err := New(nil, settings, nil); err == nil || !strings.Contains(err.Error(), "no source") || !strings.Contains(err.Error(), "xor") {
		t.Errorf("New reports %v", err)
	}
}
