// SPDX-License-Identifier: Apache-2.0

package clusterflags

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWhatACommandWaitsFor(t *testing.T) {
	for _, c := range []struct{ method, target, want string }{
		{http.MethodGet, "/api/v1/pods?limit=500", "reading pods"},
		{http.MethodGet, "/api/v1/namespaces", "reading namespaces"},
		{http.MethodGet, "/api/v1/namespaces/team-a", "reading namespaces"},
		{http.MethodGet, "/apis/apps/v1/namespaces/team-a/replicasets/web", "reading replicasets of the namespace team-a"},
		{http.MethodPost, "/api/v1/namespaces/team-a/pods?dryRun=All", "asking the API server by dry runs about pods of the namespace team-a"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/team-a/deployments/web", "writing deployments of the namespace team-a"},
		{http.MethodGet, "/version", "waiting for the API server"},
		{http.MethodGet, "/apis/apps/v1", "waiting for the API server"},
		{http.MethodGet, "/", "waiting for the API server"},
	} {
		if got := requested(httptest.NewRequest(c.method, c.target, nil)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.target, got, c.want)
		}
	}
}
