// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/sallyport-io/sallyport/internal/hosting"
)

func TestRightsForTheLeaseOfComponents(t *testing.T) {
	roles := func(source string) string {
		r := Rights{LeaderElection: hosting.DefaultLeaderElection(), ComponentsOf: "app", ServiceAccount: "app"}
		r.Registration.Service, r.Registration.Name = "home/webhooks", "app"
		r.Certificate = hosting.DefaultCertificateSettings("app")
		r.Certificate.Source = source
		var names []string
		for _, object := range r.Objects() {
			if role, ok := object.(*rbacv1.Role); ok {
				names = append(names, role.Namespace+"/"+role.Name)
			}
		}
		return strings.Join(names, " ")
	}
	if got := roles(hosting.SourceFiles); !strings.Contains(got, "home/app-components") {
		t.Errorf("with files: %s", got)
	}
	if got := roles(hosting.SourceAuthority); strings.Contains(got, "components") {
		t.Errorf("with an authority: %s", got)
	}
}
