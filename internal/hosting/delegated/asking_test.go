// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestTokensThatAreNotKnownAreAskedAboutNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asking
		token := func(token string) [sha256.Size]byte {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/label", nil)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			return shown(r)
		}
		n := 0
		flood := func(calls, addresses int) (asked int) {
			for i := range calls {
				n++
				if a.admit(token(fmt.Sprint("random-", n)), fmt.Sprintf("10.%d.%d.%d:12345", i%addresses>>16, i%addresses>>8&255, i%addresses&255)) == nil {
					asked++
				}
			}
			return asked
		}
		a.allowed(token("of-the-api-server"))
		if got := flood(1000, 1); got != addressBurst {
			t.Errorf("asked about %d of one address", got)
		}
		if err := a.admit(token("first-call"), "192.0.2.2:12345"); err != nil {
			t.Errorf("another address: %v", err)
		}
		time.Sleep(time.Second)
		if got := flood(1000, 1); got != perAddress {
			t.Errorf("asked about %d of one address a second later", got)
		}
		time.Sleep(10 * time.Second)
		if got := flood(100_000, 50_000); got != serverBurst {
			t.Errorf("asked about %d of all addresses", got)
		}
		if len(a.addresses) > maxAddresses {
			t.Errorf("%d addresses are kept", len(a.addresses))
		}
		for range 1000 {
			if err := a.admit(token("of-the-api-server"), "10.0.0.0:12345"); err != nil {
				t.Fatalf("the API server: %v", err)
			}
		}
		if err := a.admit(token(""), "10.0.0.0:12345"); err != nil {
			t.Errorf("without a token: %v", err)
		}
		for i := range 10 * maxKnown { // they are allowed to call, and are many
			time.Sleep(time.Millisecond)
			a.allowed(token(fmt.Sprint("allowed-", i)))
		}
		if len(a.known) > maxKnown {
			t.Errorf("%d callers are known", len(a.known))
		}
		a.allowed(token("of-the-api-server"))
		time.Sleep(knownFor)
		flood(100_000, 50_000)
		if err := a.admit(token("of-the-api-server"), "10.0.0.0:12345"); err == nil {
			t.Error("a caller is known for good")
		}
	})
}
