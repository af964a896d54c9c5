// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestComponentsShareTheLeaseOfTheAuthorityOrHaveTheirOwn(t *testing.T) {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"}) // never called
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	usual := registration.LeaderElectionSettings{LeaderElect: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
	type settings struct {
		LeaderElection registration.LeaderElectionSettings
		Registration   registration.Settings
	}
	with := func(change func(*settings)) *settings {
		s := &settings{LeaderElection: usual}
		s.Registration.Service = &registration.Service{Namespace: "home", Name: "webhooks"}
		change(s)
		return s
	}
	authority, err := NewLeader(clients.CoordinationV1(), "home", "authority", usual, log)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		authority *Leader
		settings  *settings
		asked     bool
		want      string // the lease; empty if there is no election
	}{
		"that of the authority":         {authority, with(func(*settings) {}), true, "home/authority"},
		"their own, beside the Service": {nil, with(func(*settings) {}), true, "home/app-components"},
		"their own, where a flag says":  {nil, with(func(s *settings) { s.LeaderElection.Namespace = "other" }), true, "other/app-components"},
		"none, if nobody asks":          {nil, with(func(*settings) {}), false, ""},
		"none, outside of the cluster":  {nil, with(func(s *settings) { s.Registration.Service = nil }), true, ""},
		"none, if there is no election": {nil, with(func(s *settings) { s.LeaderElection.LeaderElect = false }), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var c Election
			if tc.asked {
				if c.Ask(); !c.Leading() { // no replica knows the leader yet
					t.Error("it does not lead before an election")
				}
			}
			if err := c.Stand(tc.authority, tc.settings.LeaderElection, Config(&tc.settings.Registration), "app", clients.CoordinationV1(), log); err != nil {
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
