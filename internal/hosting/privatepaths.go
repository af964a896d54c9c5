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
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/kube/privatepath"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// PrivatePaths configures whether an unguessable segment is appended to the registered paths.
type PrivatePaths struct {
	// Mode is the setting authentication.privatePaths.
	Mode string
	// Shared is set if all replicas have the same keys and register themselves. Otherwise only
	// PrivatePathsAlways makes paths private.
	Shared bool
}

// keyed is a certificate source with keys for private paths: first the current signer's key,
// then those of upcoming and recent signers. All replicas have the same keys.
type keyed interface{ PathKeys() [][]byte }

// stillCalled is how long a path is served after it is no longer registered. API servers
// observe the change within seconds.
const stillCalled = 2 * time.Minute

// privatePaths derives paths that only readers of the webhook configurations know. Nil leaves
// paths unchanged.
type privatePaths struct {
	keys keyed
	mode string
	// live returns the registered paths, if they are known. It may be nil.
	live func() (paths []string, known bool)

	// Both use the monotonic clock; nil means long ago.
	plainUntil atomic.Pointer[time.Time] // plain paths are served until then
	lookAt     atomic.Pointer[time.Time] // live is called again from then on
}

// over derives private paths from the keys of a source. It returns nil if paths are not
// private.
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

// chosen reports whether to register private paths. For auto, the current registration decides.
func (p *privatePaths) chosen() bool {
	if p.mode != PrivatePathsAuto {
		return p.mode == PrivatePathsAlways
	}
	paths, known := p.live()
	return known && !slices.ContainsFunc(paths, isPlain)
}

// known returns nil once it is known which paths to register.
func (p *privatePaths) known() error {
	if p != nil && p.mode == PrivatePathsAuto {
		if _, known := p.live(); !known {
			return errors.New("the webhook configurations were not seen yet, whose paths decide about private ones")
		}
	}
	return nil
}

// plain reports whether plain paths are served too.
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

// segments returns the segments at which a path is served, the registered one first. Each has
// 128 bits and reveals neither the key nor other segments.
func (p *privatePaths) segments(path string) []string {
	var segments []string
	for _, key := range p.keys.PathKeys() {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(path))
		segments = append(segments, hex.EncodeToString(mac.Sum(nil)[:privatepath.SegmentBytes]))
	}
	return segments
}

// ready returns nil once there is a key. Nothing may be registered before.
func (p *privatePaths) ready() error {
	if len(p.keys.PathKeys()) == 0 {
		return errors.New("there is no key for private paths yet")
	}
	return nil
}

// registered returns the path to register, and serves it from now on.
func (p *privatePaths) registered(path string) string {
	if segments := p.segments(path); p.chosen() && len(segments) > 0 {
		return path + "/" + segments[0]
	}
	return path
}

// onWebhooks returns the definitions with the paths to register.
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

// onConversions returns the conversions with the paths to register.
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
