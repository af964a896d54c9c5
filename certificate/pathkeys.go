// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"time"
)

// pathKeyLabel keeps the keys of [Authority.PathKeys] apart from anything else
// that may ever be derived from an authority's key.
const pathKeyLabel = "sallyport.io/private-paths/v1"

// PathKeys returns a secret of 32 bytes for each authority whose key is held: that
// of the signer first and, while a rotation is on, that of the next or the old one.
// They are derived from the authorities' keys (HKDF-SHA256, RFC 5869), so that all
// replicas have the same, and give nothing away about them. Nil as long as no
// authority is known. They must not be changed. [Authority.Changed] tells of changes. It takes no lock, so that
// [AuthorityOptions.Published] may depend on it.
func (a *Authority) PathKeys() [][]byte {
	if keys := a.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// pathKeys are those of a state: they are asked for with each call, and derived once.
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

// replacedKeys are what paths were made of before somebody put another authority into the
// Secret. In a rotation the keys of both are known everywhere before one is used; here they
// take the same time: first the old ones are what is registered, then the new ones, while
// both are answered.
type replacedKeys struct {
	keys  [][]byte
	first bool // what is registered is made of them
	since time.Time
}

// mostReplaced bounds the keys of those who replace the authority again and again.
const mostReplaced = 4

// replaceKeys notes that the Secret holds another authority than before. It must be called
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
	a.replaced = &replacedKeys{keys: keys[:min(len(keys), mostReplaced)], first: first, since: time.Now()}
}

// storeKeys makes the keys those of the state. It must be called with mu held.
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

// ageKeys tells whether it is time for another step of replaced keys, which it makes. It
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
