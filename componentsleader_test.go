// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"log/slog"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/hosting"
)

func TestComponentsShareTheLeaseOfTheAuthorityOrHaveTheirOwn(t *testing.T) {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"}) // nobody calls it
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	settings := func(change func(*Settings)) *Settings {
		s := &Settings{LeaderElection: defaultLeaderElection()}
		s.Registration.Service = "home/webhooks"
		change(s)
		return s
	}
	authority, err := hosting.NewLeader(clients.CoordinationV1(), "home", "authority", defaultLeaderElection().times(), log)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		authority *hosting.Leader
		settings  *Settings
		asked     bool
		want      string // the lease; empty if there is no election
	}{
		"that of the authority":         {authority, settings(func(*Settings) {}), true, "home/authority"},
		"their own, beside the Service": {nil, settings(func(*Settings) {}), true, "home/app-components"},
		"their own, where a flag says":  {nil, settings(func(s *Settings) { s.LeaderElection.Namespace = "other" }), true, "other/app-components"},
		"none, if nobody asks":          {nil, settings(func(*Settings) {}), false, ""},
		"none, outside of the cluster":  {nil, settings(func(s *Settings) { s.Registration.Service = "" }), true, ""},
		"none, if there is no election": {nil, settings(func(s *Settings) { s.LeaderElection.Enabled = false }), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var c componentsLeader
			if tc.asked {
				if leader := c.ask(); !leader.Leading() { // nobody knows better yet
					t.Error("it does not lead before an election")
				}
			}
			if err := c.stand(tc.authority, tc.settings, "app", clients, log); err != nil {
				t.Fatal(err)
			}
			got := ""
			if c.Leader != nil {
				got = c.Lease()
			}
			if got != tc.want || c.Leading() != (tc.want == "") || (c.Changed() == nil) != (tc.want == "") {
				t.Errorf("lease %q, want %q; leading %v", got, tc.want, c.Leading())
			}
		})
	}
}

func TestRightsForTheLeaseOfComponents(t *testing.T) {
	roles := func(source string) string {
		r := Rights{LeaderElection: defaultLeaderElection(), ComponentsOf: "app", ServiceAccount: "app"}
		r.Registration.Service, r.Registration.Name = "home/webhooks", "app"
		r.Certificate = DefaultCertificateSettings("app")
		r.Certificate.Source = source
		var names []string
		for _, object := range r.Objects() {
			if role, ok := object.(*rbacv1.Role); ok {
				names = append(names, role.Namespace+"/"+role.Name)
			}
		}
		return strings.Join(names, " ")
	}
	if got := roles(SourceFiles); !strings.Contains(got, "home/app-components") {
		t.Errorf("with files: %s", got)
	}
	if got := roles(SourceAuthority); strings.Contains(got, "components") {
		t.Errorf("with an authority: %s", got)
	}
}
