// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
)

// SetExemptions sets the exemptions of a namespace, which must not be changed.
func (x *Index) SetExemptions(namespace string, list []exempt.Exemption) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(list) == 0 {
		delete(x.exempt, namespace)
		return
	}
	x.exempt[namespace] = list
}

// SetClock sets what tells whether exemptions have ended, for tests.
func (x *Index) SetClock(now func() time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = now
}

// Exemptions implements [match.Source].
func (x *Index) Exemptions(namespace string) ([]exempt.Exemption, time.Time) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := x.exempt[namespace]
	if len(list) == 0 {
		return nil, time.Time{}
	}
	return list, x.now()
}
