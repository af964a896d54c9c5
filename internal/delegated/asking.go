// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Whoever reaches the port can show another token with each call, and the API server is asked
// about every one. These bound what it is asked, so that what this server asks for itself,
// its lease and its certificate's Secret among it, does not wait behind it.
const (
	perAddress, addressBurst = 10, 20 // a second
	perServer, serverBurst   = 100, 100
	// mostAddresses are counted one by one; further ones only together with all others.
	mostAddresses = 4096
	// mostKnown callers are asked about as often as they call, which costs the API server
	// nothing more than every [cacheTTL].
	mostKnown = 64
	knownFor  = time.Hour
)

// errTooMany is answered as 503 with Retry-After: whoever is not to blame calls again.
var errTooMany = errors.New("too many callers show tokens that are not known")

// asking decides whether the API server is asked who calls. A caller that was allowed to call
// always passes; of the others each address has a share. Its zero value is ready.
type asking struct {
	mu        sync.Mutex
	known     map[[sha256.Size]byte]time.Time // when they last were allowed to call
	addresses map[string]*rate.Limiter
	swept     time.Time // when addresses that have not called lately were forgotten
	all       *rate.Limiter
}

// shown is the digest of the token in a request; zero without one, about which nobody is asked.
// It is taken before the token is looked at, which takes it away.
func shown(r *http.Request) (digest [sha256.Size]byte) {
	// Kubernetes takes tokens from both.
	if token := cmp.Or(r.Header.Get("Authorization"), r.Header.Get("Sec-WebSocket-Protocol")); token != "" {
		digest = sha256.Sum256([]byte(token))
	}
	return digest
}

// allowed notes that who has shown this may call.
func (a *asking) allowed(digest [sha256.Size]byte) {
	if digest == [sha256.Size]byte{} {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[[sha256.Size]byte]time.Time{}
	}
	a.known[digest] = time.Now()
	if len(a.known) <= mostKnown {
		return
	}
	oldest := digest
	for other, at := range a.known {
		if at.Before(a.known[oldest]) {
			oldest = other
		}
	}
	delete(a.known, oldest)
}

// admit is nil if the API server may be asked about who has shown this, from an address.
func (a *asking) admit(digest [sha256.Size]byte, from string) error {
	if digest == [sha256.Size]byte{} {
		return nil
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.known[digest]; ok && now.Sub(at) < knownFor {
		return nil
	}
	if a.all == nil {
		a.all, a.addresses = rate.NewLimiter(perServer, serverBurst), map[string]*rate.Limiter{}
	}
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	address := a.addresses[host]
	if address == nil && len(a.addresses) >= mostAddresses && now.Sub(a.swept) >= time.Second {
		a.swept = now
		maps.DeleteFunc(a.addresses, func(_ string, l *rate.Limiter) bool { return l.TokensAt(now) >= addressBurst })
	}
	if address == nil && len(a.addresses) < mostAddresses {
		address = rate.NewLimiter(perAddress, addressBurst)
		a.addresses[host] = address
	}
	if address != nil && !address.AllowN(now, 1) || !a.all.AllowN(now, 1) {
		return errTooMany
	}
	return nil
}
