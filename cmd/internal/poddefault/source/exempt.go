// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/store"
)

// SetExemptions sets the exemptions of a namespace, which must not be changed.
func (x *Index) SetExemptions(namespace string, list []*exempt.Exemption) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(list) == 0 {
		delete(x.exempt, namespace)
		return
	}
	x.exempt[namespace] = list
}

// setExemption adds an exemption, or replaces the one with its namespace and name; with remove it removes that.
func (p *plans) setExemption(e *exempt.Exemption, remove bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(p.exempt[e.Namespace]), func(known *exempt.Exemption) bool { return known.Name == e.Name })
	if !remove {
		at, _ := slices.BinarySearchFunc(list, e, exempt.Compare)
		list = slices.Insert(list, at, e)
	}
	if len(list) == 0 {
		delete(p.exempt, e.Namespace)
		return
	}
	p.exempt[e.Namespace] = list
}

// SetClock sets what tells whether exemptions have ended, for tests.
func (x *Index) SetClock(now func() time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = now
}

// Exemptions implements [match.Source].
func (p *plans) Exemptions(namespace string) ([]*exempt.Exemption, time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	list := p.exempt[namespace]
	if len(list) == 0 {
		return nil, time.Time{}
	}
	return list, p.now()
}

// exempted takes over changes of exemptions. Those with a problem exempt from nothing.
func (w *Watcher) exempted(changes []store.Change[*exempt.Record]) {
	for _, c := range changes {
		if c.Now == nil {
			w.setExemption(c.Before.Exemption, true)
			continue
		}
		w.setExemption(c.Now.Exemption, c.Now.Problem != nil)
	}
}
