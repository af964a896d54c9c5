// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/foreign"
	"github.com/sallyport-io/sallyport/internal/registration/ownership"
)

// The time between two events about the same foreign terms, and about others. Events live an
// hour by default.
const foreignEventPause, foreignChangePause = 50 * time.Minute, 10 * time.Second

// foreignTerms are those of the configurations of a [Controller].
type foreignTerms struct {
	mu     sync.Mutex
	byKind map[string]string // described
	told   map[string]toldTerms
}

// toldTerms are those of the last event about a configuration.
type toldTerms struct {
	text string
	at   time.Time
}

// due reports whether it is time for another event.
func (t toldTerms) due(text string) bool {
	pause := foreignEventPause
	if t.text != text {
		pause = foreignChangePause
	}
	return text != "" && time.Since(t.at) > pause
}

// withRecords adds the record of their own terms to the configurations.
func withRecords(c Configurations, webhooks []admission.Webhook) Configurations {
	record := func(of admission.Type) map[string]string {
		var own []foreign.Webhook
		for _, w := range webhooks {
			if w = w.Defaulted(); w.Type == of {
				own = append(own, foreign.Webhook{Name: w.Name, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions})
			}
		}
		return map[string]string{foreign.Annotation: foreign.Record(own)}
	}
	if c.Mutating != nil {
		c.Mutating.WithAnnotations(record(admission.TypeMutating))
	}
	if c.Validating != nil {
		c.Validating.WithAnnotations(record(admission.TypeValidating))
	}
	return c
}

// foreignTermsOf returns the foreign terms of a configuration, by its own record. A
// configuration without one is not ours yet.
func foreignTermsOf(observed metav1.Object, manager string) []foreign.Term {
	var webhooks []foreign.Webhook
	switch c := observed.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		webhooks = foreign.Mutating(c)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		webhooks = foreign.Validating(c)
	default:
		return nil
	}
	out, _ := foreign.Terms(metav1.ObjectMeta{Annotations: observed.GetAnnotations(), ManagedFields: observed.GetManagedFields()}, webhooks, manager)
	return out
}

// noteForeign reports the foreign terms of an observed configuration: as metric, status and
// log, and the leader also as an event. A configuration that is not as desired is left
// until it is repaired, because its record may be from any client.
func (k *Controller) noteForeign(o *object, desired desired, observed metav1.Object) {
	if o.reconciler != k.configurations || observed != nil && (observed.GetAnnotations()[foreign.Annotation] == "" || observed.GetAnnotations()[foreign.Annotation] != desired.record(o.kind())) {
		return
	}
	terms := foreignTermsOf(observed, k.options.FieldManager)
	k.metrics.noteForeign(o.kind(), terms)
	text := foreign.List(terms)
	k.foreign.mu.Lock()
	changed := k.foreign.byKind[o.kind()] != text
	due := k.options.Leading() && k.foreign.told[o.kind()].due(text)
	k.foreign.byKind[o.kind()] = text
	if due {
		k.foreign.told[o.kind()] = toldTerms{text, time.Now()}
	}
	var all []string
	for _, kind := range []string{mutatingKind, validatingKind} {
		if t := k.foreign.byKind[kind]; t != "" {
			all = append(all, t)
		}
	}
	k.foreign.mu.Unlock()
	if changed && k.options.ForeignTerms != nil {
		k.options.ForeignTerms(strings.Join(all, "; "))
	}
	log := k.options.Logger.With("kind", o.kind(), "name", o.name())
	switch {
	case changed && text == "":
		log.Info("terms of other clients no longer narrow the webhooks")
	case changed:
		log.Warn("terms of other clients narrow the webhooks", "terms", text, "refused", k.options.RefuseForeignTerms)
	}
	if !due {
		return
	}
	action, note := "Keep", "The API server does not call the webhooks for the objects that they exclude. If that is intended, add them to registration.namespaceSelector of the server; otherwise remove them."
	if k.options.RefuseForeignTerms {
		action, note = "Remove", "They are removed."
	}
	k.warn(o, observed, "ForeignTerms", action, shortenedNote("Terms of other clients narrow the webhooks: "+text, note))
}

// shortenedNote joins a text and a note within the API server's limit for events.
func shortenedNote(text, note string) string {
	const most = 1024
	if room := most - len(note) - len("… . "); len(text) > room {
		text = strings.ToValidUTF8(text[:room], "") + "…"
	}
	return text + ". " + note
}

// record returns the record of the desired configuration of a kind, empty without one.
func (d desired) record(kind string) string {
	switch {
	case kind == mutatingKind && d.Mutating != nil:
		return d.Mutating.Annotations[foreign.Annotation]
	case kind == validatingKind && d.Validating != nil:
		return d.Validating.Annotations[foreign.Annotation]
	}
	return ""
}

// own replaces unset selectors by empty ones, which leaves no room for terms of others. The
// func restores them.
func own(desired []ownership.SelectorField) (restore func()) {
	var unset []ownership.SelectorField
	for _, s := range desired {
		if *s.Value == nil {
			*s.Value = metav1ac.LabelSelector()
			unset = append(unset, s)
		}
	}
	return func() {
		for _, s := range unset {
			*s.Value = nil
		}
	}
}

// removeConditions removes the match conditions that the record of a configuration does not
// name. Server-side apply cannot: they are another manager's. It returns the resource
// version.
func (a *applied[Object, List, Apply]) removeConditions(ctx context.Context, live Object) (left string, err error) {
	version := live.GetResourceVersion()
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	patch := []operation{{"test", "/metadata/resourceVersion", version}}
	record, known := foreign.Read(live.GetAnnotations())
	if !known {
		return version, nil
	}
	for i, w := range a.shared.narrowing(live) {
		ours, known := record[w.Name]
		for j := len(w.MatchConditions) - 1; known && j >= 0; j-- { // from the end, so that indexes stay true
			if !slices.Contains(ours.MatchConditions, w.MatchConditions[j].Name) {
				patch = append(patch, operation{Op: "remove", Path: fmt.Sprintf("/webhooks/%d/matchConditions/%d", i, j)})
			}
		}
	}
	if len(patch) == 1 {
		return version, nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return version, err
	}
	live, err = a.client.Patch(ctx, a.objectName, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: a.manager})
	if err != nil {
		return version, fmt.Errorf("removing match conditions of other clients: %w", err)
	}
	return live.GetResourceVersion(), nil
}
