// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/internal/privatepath"
	"github.com/sallyport-io/sallyport/registration"
)

// Whether paths are private.
const (
	PrivatePathsAlways = "true"
	PrivatePathsNever  = "false"
	// PrivatePathsAuto makes paths private where all replicas share an authority and register
	// themselves, unless they are registered otherwise already: a server of before, which is
	// replaced one by one, would not know them.
	PrivatePathsAuto = "auto"
)

// PrivatePaths say whether a segment that cannot be guessed is appended to the paths that
// are registered.
type PrivatePaths struct {
	// Mode is PrivatePathsAlways, PrivatePathsNever or PrivatePathsAuto.
	Mode string
	// Shared is set if all replicas have the same keys, and register themselves. Otherwise
	// only PrivatePathsAlways makes paths private.
	Shared bool
}

// keyed is a certificate source that has keys for private paths: that of the signer
// first, then those of signers that are about to sign or have signed until lately. All
// replicas have the same.
type keyed interface{ PathKeys() [][]byte }

// stillCalled is for how long a path is answered that is registered no more: API servers
// hear of the change within a moment.
const stillCalled = 2 * time.Minute

// privatePaths make paths that only who can read the webhook configurations knows. Nil
// leaves them as they are.
type privatePaths struct {
	keys keyed
	mode string
	// live are the paths that are registered, if that is known. May be nil.
	live func() (paths []string, known bool)

	// Both are compared by a clock that nobody sets; nil is long ago.
	plainUntil atomic.Pointer[time.Time] // until then others are answered too
	lookAt     atomic.Pointer[time.Time] // from then on live is asked again
}

// over makes private paths of the keys of a source; nil if nobody has to know the paths.
func (o *PrivatePaths) over(source certificate.Source, live func() ([]string, bool)) (*privatePaths, error) {
	if o == nil || o.Mode != PrivatePathsAlways && !o.Shared {
		return nil, nil
	}
	keys, ok := source.(keyed)
	if !ok {
		return nil, errors.New("private paths: the source of the certificate has no keys to make them of: it must be an authority")
	}
	return &privatePaths{keys: keys, mode: o.Mode, live: live}, nil
}

func isPlain(path string) bool {
	_, private := privatepath.Public(path)
	return !private
}

// chosen tells whether private paths are what is to be registered. For auto, what is
// registered decides.
func (p *privatePaths) chosen() bool {
	if p.mode != PrivatePathsAuto {
		return p.mode == PrivatePathsAlways
	}
	paths, known := p.live()
	return known && !slices.ContainsFunc(paths, isPlain)
}

// known is nil once it is known what to register.
func (p *privatePaths) known() error {
	if p != nil && p.mode == PrivatePathsAuto {
		if _, known := p.live(); !known {
			return errors.New("the webhook configurations were not seen yet, whose paths decide about private ones")
		}
	}
	return nil
}

// plain tells whether paths without a segment are answered too.
func (p *privatePaths) plain() bool {
	switch {
	case p.mode == PrivatePathsNever:
		return true
	case p.live == nil:
		return false
	}
	now := time.Now()
	before := func(at *time.Time) bool { return at != nil && now.Before(*at) }
	if !before(p.lookAt.Load()) {
		paths, known := p.live()
		if !known {
			return true
		}
		p.lookAt.Store(new(now.Add(time.Second)))
		if slices.ContainsFunc(paths, isPlain) {
			p.plainUntil.Store(new(now.Add(stillCalled)))
		}
	}
	return before(p.plainUntil.Load())
}

// segments are those at which a path is answered, the one that is registered first.
// They are of 128 bits, and tell nothing of the key or of each other.
func (p *privatePaths) segments(path string) []string {
	var segments []string
	for _, key := range p.keys.PathKeys() {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(path))
		segments = append(segments, hex.EncodeToString(mac.Sum(nil)[:privatepath.SegmentBytes]))
	}
	return segments
}

// ready is nil once there is a key: nothing may be registered before.
func (p *privatePaths) ready() error {
	if len(p.keys.PathKeys()) == 0 {
		return errors.New("there is no key for private paths yet")
	}
	return nil
}

// registered is the path that the API server is told, and answered from now on.
func (p *privatePaths) registered(path string) string {
	if segments := p.segments(path); p.chosen() && len(segments) > 0 {
		return path + "/" + segments[0]
	}
	return path
}

// onWebhooks are the definitions as the API server is told of them.
func (p *privatePaths) onWebhooks(webhooks []admission.Webhook) []admission.Webhook {
	if p == nil {
		return webhooks
	}
	out := slices.Clone(webhooks)
	for i := range out {
		out[i].Path = p.registered(out[i].Path)
	}
	return out
}

// onConversions are the conversions as the API server is told of them.
func (p *privatePaths) onConversions(conversions []registration.Conversion) []registration.Conversion {
	if p == nil {
		return conversions
	}
	out := slices.Clone(conversions)
	for i := range out {
		out[i].Path = p.registered(out[i].Path)
	}
	return out
}
