// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServersShowTheirCertificates(t *testing.T) {
	var endpoints, want []string
	for range 20 { // more than run at once
		server := httptest.NewTLSServer(nil)
		t.Cleanup(server.Close)
		endpoints = append(endpoints, server.Listener.Addr().String())
		want = append(want, server.Listener.Addr().String())
	}
	endpoints = append(endpoints, "127.0.0.1:1", "no port") // a closed port, and no address at all
	got := Certificates(t.Context(), endpoints)
	var answered []string
	for endpoint, chain := range got {
		if len(chain) != 1 || len(chain[0].DNSNames) == 0 {
			t.Errorf("%s shows %d certificates", endpoint, len(chain))
		}
		answered = append(answered, endpoint)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(answered))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheServiceOfAnEndpoint(t *testing.T) {
	if diff := cmp.Diff([]string{"hooks-system", "other"}, namespacesOf([]string{
		"webhooks.hooks-system.svc:443", "more.hooks-system.svc:8443", "hooks.example.com:443", "a.other.svc:443", "127.0.0.1:9443", "svc:1", "nonsense",
	})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
