// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"time"

	"github.com/sallyport-io/sallyport/admission"
)

// settleTime gives API servers time to observe a changed configuration, and to finish calls
// that began before. They watch each of the two configurations separately and observe a change
// within a second.
const settleTime = 3 * time.Second

// Staging registers new mutating webhooks before new validating ones that may require their
// changes, and removes validating webhooks before mutating ones. Otherwise a request in flight
// could be denied for lacking a change that no webhook was asked to make.
//
// The first registration is not staged.
type Staging struct {
	begun   bool
	current []admission.Webhook // the registered webhooks
	gained  time.Time           // when a mutating webhook was added
	lost    time.Time           // when a validating webhook was removed
}

// Next returns the webhooks to register now on the way to the wanted ones, and when to call it
// again; zero time if nothing remains.
func (s *Staging) Next(now time.Time, wanted []admission.Webhook) (registered []admission.Webhook, again time.Time) {
	if !s.begun {
		s.begun, s.current = true, wanted
		return wanted, again
	}
	was, is := byName(s.current), byName(wanted)
	for name, w := range is {
		if _, known := was[name]; !known && w.Type == admission.TypeMutating {
			s.gained = now
		}
	}
	for name, w := range was {
		if _, stays := is[name]; !stays && w.Type == admission.TypeValidating {
			s.lost = now
		}
	}
	come, gone := s.gained.Add(settleTime), s.lost.Add(settleTime)
	for _, w := range wanted {
		if _, known := was[w.Name]; !known && w.Type == admission.TypeValidating && now.Before(come) {
			again = come
			continue
		}
		registered = append(registered, w)
	}
	for _, w := range s.current {
		if _, stays := is[w.Name]; !stays && w.Type == admission.TypeMutating && now.Before(gone) {
			registered = append(registered, w)
			if again.IsZero() || gone.Before(again) {
				again = gone
			}
		}
	}
	s.current = registered
	return registered, again
}

func byName(webhooks []admission.Webhook) map[string]admission.Webhook {
	out := make(map[string]admission.Webhook, len(webhooks))
	for _, w := range webhooks {
		out[w.Name] = w
	}
	return out
}
