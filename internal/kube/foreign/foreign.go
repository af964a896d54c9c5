// SPDX-License-Identifier: Apache-2.0

// Package foreign finds what other clients have added to registered webhooks to narrow
// them: terms of selectors, and match conditions.
//
// Server-side apply cannot tell whose a term is, because a label selector belongs to its
// managers as a whole. So the server that registers webhooks records its own terms in an
// annotation, and all others are foreign.
package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// Annotation of a webhook configuration records the server's own terms. See [Record].
const Annotation = "registration.sallyport.io/terms"

// Manager is the server's default field manager.
const Manager = "sallyport"

// The fields that narrow a webhook.
const (
	NamespaceSelector = "namespaceSelector"
	ObjectSelector    = "objectSelector"
	MatchConditions   = "matchConditions"
)

// A Webhook is the part of a webhook that decides for which requests it is called.
type Webhook struct {
	Name                              string
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	MatchConditions                   []admissionregistrationv1.MatchCondition
}

// A Term is one that the server has not registered.
type Term struct {
	// Webhook is its name, or that of a policy or binding.
	Webhook string `json:"webhook"`
	// Kind is "policy" or "binding"; empty for a webhook.
	Kind  string `json:"kind,omitempty"`
	Field string `json:"field"`
	// Text is a term as kubectl writes selectors, or the name of a match condition.
	Text string `json:"term"`
	// Managers are the field managers that own the field, in addition to the server; empty if
	// the managed fields do not say.
	Managers []string `json:"managers,omitempty"`
}

// String returns "webhook a.example.com: objectSelector team=a (kubectl-patch)".
func (t Term) String() string {
	out := fmt.Sprintf("%s %s: %s %s", cmp.Or(t.Kind, "webhook"), t.Webhook, t.Field, t.Text)
	if len(t.Managers) > 0 {
		out += " (" + strings.Join(t.Managers, ", ") + ")"
	}
	return out
}

// List joins the texts of terms.
func List(terms []Term) string {
	texts := make([]string, len(terms))
	for i, t := range terms {
		texts[i] = t.String()
	}
	return strings.Join(texts, "; ")
}

// Own are the terms of one webhook that the server has registered.
type Own struct {
	NamespaceSelector string   `json:"namespaceSelector,omitempty"`
	ObjectSelector    string   `json:"objectSelector,omitempty"`
	MatchConditions   []string `json:"matchConditions,omitempty"`
}

// Record returns the value of [Annotation] for the webhooks of a configuration.
func Record(webhooks []Webhook) string {
	all := map[string]Own{}
	for _, w := range webhooks {
		own := Own{NamespaceSelector: text(w.NamespaceSelector), ObjectSelector: text(w.ObjectSelector)}
		for _, m := range w.MatchConditions {
			own.MatchConditions = append(own.MatchConditions, m.Name)
		}
		all[w.Name] = own
	}
	out, err := json.Marshal(all)
	if err != nil { // strings always marshal
		return ""
	}
	return string(out)
}

// Read returns the recorded terms by webhook. It returns false for a configuration that
// does not record any: its terms may be from any client.
func Read(annotations map[string]string) (map[string]Own, bool) {
	var all map[string]Own
	if json.Unmarshal([]byte(annotations[Annotation]), &all) != nil || all == nil {
		return nil, false
	}
	return all, true
}

// Terms returns the foreign terms of the webhooks that the record of their configuration
// names, in the order of the webhooks. Manager is the server's field manager. It returns
// false if there is no record.
func Terms(of metav1.ObjectMeta, webhooks []Webhook, manager string) ([]Term, bool) {
	record, ok := Read(of.Annotations)
	if !ok {
		return nil, false
	}
	var out []Term
	for _, w := range webhooks {
		own, ours := record[w.Name]
		if !ours {
			continue // another client's webhook in the same configuration
		}
		for _, f := range []struct {
			field    string
			observed *metav1.LabelSelector
			own      string
		}{{NamespaceSelector, w.NamespaceSelector, own.NamespaceSelector}, {ObjectSelector, w.ObjectSelector, own.ObjectSelector}} {
			registered, err := metav1.ParseToLabelSelector(f.own)
			if err != nil {
				registered = nil
			}
			for _, term := range added(f.observed, registered) {
				out = append(out, Term{Webhook: w.Name, Field: f.field, Text: term, Managers: managers(of, manager, w.Name, "f:"+f.field)})
			}
		}
		for _, m := range w.MatchConditions {
			if !slices.Contains(own.MatchConditions, m.Name) {
				out = append(out, Term{Webhook: w.Name, Field: MatchConditions, Text: m.Name, Managers: managers(of, manager, w.Name, "f:"+MatchConditions, `k:{"name":"`+m.Name+`"}`)})
			}
		}
	}
	return out, true
}

// Strip returns the webhook with the terms that the server has registered, and no others.
func (o Own) Strip(w Webhook) Webhook {
	selector := func(text string) *metav1.LabelSelector {
		out, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			return nil
		}
		return out
	}
	w.NamespaceSelector, w.ObjectSelector = selector(o.NamespaceSelector), selector(o.ObjectSelector)
	w.MatchConditions = slices.DeleteFunc(slices.Clone(w.MatchConditions), func(m admissionregistrationv1.MatchCondition) bool {
		return !slices.Contains(o.MatchConditions, m.Name)
	})
	return w
}

// Mutating returns the webhooks of a configuration.
func Mutating(c *admissionregistrationv1.MutatingWebhookConfiguration) []Webhook {
	out := make([]Webhook, len(c.Webhooks))
	for i, w := range c.Webhooks {
		out[i] = Webhook{w.Name, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions}
	}
	return out
}

// Validating returns the webhooks of a configuration.
func Validating(c *admissionregistrationv1.ValidatingWebhookConfiguration) []Webhook {
	out := make([]Webhook, len(c.Webhooks))
	for i, w := range c.Webhooks {
		out[i] = Webhook{w.Name, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions}
	}
	return out
}

// added returns the terms of a selector that another one does not have.
func added(observed, own *metav1.LabelSelector) []string {
	ours := terms(own)
	return slices.DeleteFunc(terms(observed), func(t string) bool { return slices.Contains(ours, t) })
}

// terms returns the terms of a selector as texts, sorted. Equal terms have equal texts.
func terms(s *metav1.LabelSelector) []string {
	var out []string
	for _, term := range selectors.Terms(s) {
		if term.Operator == metav1.LabelSelectorOpIn && len(term.Values) == 1 {
			out = append(out, term.Key+"="+term.Values[0])
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{term}})
		if err != nil { // the API server rejects it
			continue
		}
		out = append(out, selector.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// text returns a selector as kubectl takes it: "!d,a=b,c notin (d,e)". Nil is empty.
func text(s *metav1.LabelSelector) string { return strings.Join(terms(s), ",") }

// managers names the field managers, other than the server's own apply, that own the field
// at path in a webhook. A client that writes under the server's name is named, unless it
// applies.
func managers(of metav1.ObjectMeta, own, webhook string, path ...string) []string {
	return managersAt(of, own, append([]string{"f:webhooks", `k:{"name":"` + webhook + `"}`}, path...)...)
}

// managersAt is managers for a field of the object.
func managersAt(of metav1.ObjectMeta, own string, path ...string) []string {
	var out []string
	for _, entry := range of.ManagedFields {
		if entry.Manager == own && entry.Operation == metav1.ManagedFieldsOperationApply || entry.Subresource != "" || !Owns(entry, path...) {
			continue
		}
		if name := cmp.Or(entry.Manager, "unknown"); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Owns reports whether an entry of metadata.managedFields has the field at a path, given as its keys, such
// as "f:spec".
func Owns(entry metav1.ManagedFieldsEntry, path ...string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	data, err := entry.FieldsV1.MarshalJSON()
	if err != nil {
		return false
	}
	for _, key := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(data, &fields) != nil {
			return false
		}
		next, ok := fields[key]
		if !ok {
			return false
		}
		data = next
	}
	return true
}
