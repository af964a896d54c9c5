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

// Anyone who reaches the port can send a new token with each call, and each needs a
// TokenReview. These limits keep such reviews from delaying the server's own requests,
// such as those for its lease and its certificate's Secret.
const (
	perAddress, addressBurst = 10, 20 // per second
	perServer, serverBurst   = 100, 100
	// maxAddresses are counted individually. Further addresses share one limit.
	maxAddresses = 4096
	// maxKnown limits the callers without a rate limit. Their reviews cost the API
	// server no more than one every [cacheTTL].
	maxKnown = 64
	knownFor = time.Hour
)

// errTooMany results in 503 with Retry-After, so that legitimate callers retry.
var errTooMany = errors.New("too many callers show tokens that are not known")

// asking decides whether to send a TokenReview for a caller. Callers that were allowed
// before always pass. The others have a rate limit per address. The zero value is ready
// to use.
type asking struct {
	mu        sync.Mutex
	known     map[[sha256.Size]byte]time.Time // when they were last allowed
	addresses map[string]*rate.Limiter
	swept     time.Time // when inactive addresses were dropped
	all       *rate.Limiter
}

// shown returns the digest of a request's token, or zero without a token, which needs
// no review. Call it before authentication, which removes the token.
func shown(r *http.Request) (digest [sha256.Size]byte) {
	// Kubernetes accepts tokens in both headers.
	if token := cmp.Or(r.Header.Get("Authorization"), r.Header.Get("Sec-WebSocket-Protocol")); token != "" {
		digest = sha256.Sum256([]byte(token))
	}
	return digest
}

// allowed records that the caller with this token is allowed.
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
	if len(a.known) <= maxKnown {
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

// admit returns nil if a token from an address may be reviewed.
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
	if address == nil && len(a.addresses) >= maxAddresses && now.Sub(a.swept) >= time.Second {
		a.swept = now
		maps.DeleteFunc(a.addresses, func(_ string, l *rate.Limiter) bool { return l.TokensAt(now) >= addressBurst })
	}
	if address == nil && len(a.addresses) < maxAddresses {
		address = rate.NewLimiter(perAddress, addressBurst)
		a.addresses[host] = address
	}
	if address != nil && !address.AllowN(now, 1) || !a.all.AllowN(now, 1) {
		return errTooMany
	}
	return nil
}
