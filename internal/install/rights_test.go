// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

func TestRightsForTheLeaseOfComponents(t *testing.T) {
	roles := func(source string) string {
		r := Rights{ComponentsOf: "app", ServiceAccount: "app"}
		all := hosting.Settings{
			Registration: &r.Registration, Certificate: &r.Certificate, LeaderElection: &r.LeaderElection,
			Authentication: &serving.AuthenticationSettings{}, Serving: &serving.Settings{},
		}
		all.SetDefaults("app")
		r.Registration.Service, r.Registration.Mode = &registration.Service{Namespace: "home", Name: "webhooks"}, registration.ModeNone
		r.Certificate.Source = source
		var names []string
		for _, object := range r.Objects() {
			if role, ok := object.(*rbacv1.Role); ok {
				names = append(names, role.Namespace+"/"+role.Name)
			}
		}
		return strings.Join(names, " ")
	}
	if got := roles(certificate.SourceFiles); !strings.Contains(got, "home/app-components") {
		t.Errorf("with files: %s", got)
	}
	if got := roles(certificate.SourceAuthority); strings.Contains(got, "components") {
		t.Errorf("with an authority: %s", got)
	}
}
