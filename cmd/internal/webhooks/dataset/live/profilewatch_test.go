// SPDX-License-Identifier: Apache-2.0

package live

import (
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
)

// TestAnEarlierProfileGoesOnToCount changes the content of a ConfigMap through the
// reflector's interface.
func TestAnEarlierProfileGoesOnToCount(t *testing.T) {
	w, err := Watch(&rest.Config{Host: "https://127.0.0.1:1"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	settings := dataset.DefaultSettings()
	settings.PluginsProfileConfigMap = "fluid-system/webhook-plugins"
	if err := w.ReadyFor(settings); err == nil {
		t.Error("it is ready before it is wanted")
	}
	w.Want(settings)
	p := w.profiles[dataset.Ref{Kind: kinds.Profile, Namespace: "fluid-system", Name: "webhook-plugins"}]
	configMap := func(profile string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"pluginsProfile": profile}}
	}
	missing := func(want string) {
		t.Helper()
		_, err := w.Find(t.Context(), p.ref, false)
		if _, retry := admission.RetryAfter(err); !retry || !strings.Contains(err.Error(), want) || w.ReadyFor(settings) == nil {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	missing("it is not read yet")
	if err := p.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	missing("it is not there: create it")
	if err := p.Add(configMap("plugins: {serverful: {withDataset: [Nope]}}")); err != nil {
		t.Fatal(err)
	}
	missing(`pluginsProfile: plugins.serverful.withDataset: there is no plugin "Nope"`)
	counts := func(sidecars bool) {
		t.Helper()
		object, err := w.Find(t.Context(), p.ref, false)
		if err != nil || object.Profile == nil || w.wantsSidecars() != sidecars || w.ReadyFor(settings) != nil {
			t.Errorf("%+v, %v, sidecars: %v", object, err, w.wantsSidecars())
		}
	}
	if err := p.Replace([]any{configMap("plugins: {serverful: {withDataset: [DatasetUsageInjector]}}")}, ""); err != nil {
		t.Fatal(err)
	}
	counts(false)
	if err := p.Update(configMap(dataset.DefaultProfile)); err != nil {
		t.Fatal(err)
	}
	counts(true)
	for _, change := range []func() error{
		func() error { return p.Update(configMap("plugins: [")) }, func() error { return p.Delete(nil) }, func() error { return p.Replace(nil, "") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		counts(true)
	}
}
