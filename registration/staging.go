// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"time"

	"github.com/sallyport-io/sallyport/admission"
)

// settleTime is how long API servers are given to act on a changed configuration, and to
// end the calls that began before: they hear of it by a watch of their own, within a
// second, and each of the two kinds of webhooks has its own configuration.
const settleTime = 3 * time.Second

// staging lets the API server see mutating webhooks before validating ones come that
// may ask for what they do, and validating ones go before them. An object that is on its
// way would else be refused for lacking what nobody was asked to give it.
//
// What is registered at first is taken as it is.
type staging struct {
	begun   bool
	current []admission.Webhook // as registered
	gained  time.Time           // when a mutating webhook came
	lost    time.Time           // when a validating webhook went
}

// next returns what is to be registered now on the way to what is wanted, and when to
// ask again; the zero time if it is all there.
func (s *staging) next(now time.Time, wanted []admission.Webhook) (registered []admission.Webhook, again time.Time) {
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
