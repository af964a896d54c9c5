// SPDX-License-Identifier: Apache-2.0

package serverdoctor

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestDoctorExpectsTheRightsOfRegisteredWebhooks(t *testing.T) {
	registered := func(names ...string) *doctor.Installation {
		of := &doctor.Installation{Registration: registration.Settings{Name: "hooks", Service: &registration.Service{Namespace: "store", Name: "web"}}, ServiceAccount: "sallyport"}
		for _, name := range names {
			of.Webhooks = append(of.Webhooks, cluster.Webhook{Name: name})
		}
		return of
	}
	reads := func(of *doctor.Installation, resource string) bool {
		objects, err := Options().Rights(of)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(objects[0].(*rbacv1.ClusterRole).Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Resources, resource)
		})
	}
	for _, b := range serve.Builtins() {
		webhooks, err := b.Default()
		if err != nil {
			t.Fatal(err)
		}
		got, want := reads(registered(webhooks[0].Name), "poddefaults"), b.Name == "poddefault"
		if got != want {
			t.Errorf("where %s alone is registered, rights for PodDefaults: %v, want %v", b.Name, got, want)
		}
	}
	if !reads(registered(), "poddefaults") || !reads(registered("check.example.com"), "poddefaults") {
		t.Error("where no ready-made webhook is registered, no rights of those that run by default")
	}
}
