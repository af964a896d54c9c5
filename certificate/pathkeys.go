// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
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
func pathKeys(known *state) *[][]byte {
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
	return &keys
}
