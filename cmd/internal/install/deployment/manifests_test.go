// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func manifests(parts ...string) *Manifests {
	return &Manifests{
		Server: serve.Default(), Parts: parts, ServiceAccount: "sallyport",
		Callers: Callers{NetworkPolicy: true}, Workload: Workload{Workload: install.Workload{Replicas: 2}, SecurePort: 8443},
	}
}

func TestEveryProblemOfManifestsIsReported(t *testing.T) {
	m := manifests(AllParts...)
	m.Static, m.Workload.Replicas, m.Workload.TLSSecret, m.Callers.CIDRs, m.ServiceAccount = true, 0, "tls", []string{"10.0.0.1"}, "A b"
	err := m.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{"--service or --url", "--static prints", "--image", "--replicas 0", "--tls-secret", "--api-server-cidrs", "--service-account", "--part namespace"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in\n%v", want, err)
		}
	}
}

func TestManifestsComeInTheOrderInWhichTheyAreCreated(t *testing.T) {
	m := manifests(AllParts...)
	m.Server.Registration.Service, m.Workload.Image = &registration.Service{Namespace: "home", Name: "webhooks"}, "registry.example.com/sallyport:v1"
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	objects, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects {
		if kind := object.GetObjectKind().GroupVersionKind().Kind; len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	got := strings.Join(kinds, " ")
	at := -1
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "ClusterRole", "FlowSchema", "NetworkPolicy", "Deployment", "MutatingWebhookConfiguration"} {
		next := strings.Index(got, kind)
		if next < at {
			t.Errorf("%s comes too early, or not at all: %s", kind, got)
		}
		at = next
	}
}
