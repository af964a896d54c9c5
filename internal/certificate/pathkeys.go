// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"time"
)

// pathKeyLabel separates the keys of [Authority.PathKeys] from any other keys derived from
// an authority's key.
const pathKeyLabel = "sallyport.io/private-paths/v1"

// PathKeys returns a secret of 32 bytes for each known authority key: first that of the
// signer and, during a rotation, that of the next or the old authority. They are derived
// with HKDF-SHA256 (RFC 5869), so that all replicas have the same and they reveal nothing
// about the authorities' keys. Nil as long as no authority is known. The result must not be
// modified. [Authority.Changed] signals changes. PathKeys takes no lock, so that
// [AuthorityOptions.Published] may depend on it.
func (a *Authority) PathKeys() [][]byte {
	if keys := a.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// pathKeys are the keys of a state. They are used for each call, so they are derived only
// once.
func pathKeys(known *state) [][]byte {
	var keys [][]byte
	for _, authority := range []*issuer{known.signer, known.other} {
		if authority == nil {
			continue
		}
		der, err := x509.MarshalPKCS8PrivateKey(authority.key)
		if err != nil { // it was read from, or made for, this very form
			continue
		}
		key, err := hkdf.Key(sha256.New, der, nil, pathKeyLabel, sha256.Size)
		if err != nil { // the length is a constant that is allowed
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// replacedKeys are the keys of paths from before another authority was put into the Secret
// manually. In a rotation, all replicas know both keys before one is used; here the switch
// takes the same time: paths with the old keys stay registered first, then those with the
// new ones, while both are served.
type replacedKeys struct {
	keys  [][]byte
	first bool // the registered paths use them
	since time.Time
}

// maxReplaced limits the keys kept if the authority is replaced repeatedly.
const maxReplaced = 4

// replaceKeys records that the Secret has another authority than before. It must be called
// with mu held, before the state is changed.
func (a *Authority) replaceKeys(found *state) {
	keys := a.PathKeys()
	first := true
	if a.options.Published != nil {
		// Where it is published already, others know its keys.
		if published, err := a.options.Published(); err == nil && len(published) > lacking(published, found.signer) {
			first = false
		}
	}
	a.replaced = &replacedKeys{keys: keys[:min(len(keys), maxReplaced)], first: first, since: time.Now()}
}

// storeKeys sets the keys to those of the state. It must be called with mu held.
func (a *Authority) storeKeys() {
	keys := pathKeys(a.state)
	switch {
	case a.replaced == nil:
	case a.replaced.first:
		keys = append(a.replaced.keys[:len(a.replaced.keys):len(a.replaced.keys)], keys...)
	default:
		keys = append(keys, a.replaced.keys...)
	}
	a.keys.Store(&keys)
}

// ageKeys advances the replacement of keys if it is time, and reports whether it did. It
// must be called with mu held.
func (a *Authority) ageKeys() bool {
	if a.replaced == nil {
		return false
	}
	switch since := time.Since(a.replaced.since); {
	case since >= 2*a.options.Propagation:
		a.replaced = nil
	case a.replaced.first && since >= a.options.Propagation:
		a.replaced.first = false
	default:
		return false
	}
	a.storeKeys()
	return a.serving.Load() != nil
}
