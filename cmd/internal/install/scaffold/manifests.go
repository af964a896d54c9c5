// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Rendered are the webhooks of webhook configurations, as `kustomize build` prints them for a project. They decide
// all that the API server is told; a marker of the same webhook only says where its handler is. The notes
// say what has no place in a definition.
func Rendered(project string, objects []*manifest.Object) (files []File, notes []string, err error) {
	found, notes, err := webhooksOf(objects)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, nil, errors.New("the manifests have no MutatingWebhookConfiguration or ValidatingWebhookConfiguration: give all that is applied, for example by `kustomize build config/default`")
	}
	marked, err := markersOf(project)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, locate(found, marked)...)
	if err := unique(found); err != nil {
		return nil, nil, err
	}
	code, err := define(found)
	return []File{{Path: definitionsFile, Content: code}}, notes, err
}

// locate tells the webhooks where their markers are. The notes name what is only in one of the lists.
func locate(found, marked []marker) (notes []string) {
	used := make([]bool, len(marked))
	find := func(same func(marker) bool) bool {
		i := slices.IndexFunc(marked, same)
		if i >= 0 {
			used[i] = true
		}
		return i >= 0
	}
	for i := range found {
		f := &found[i]
		take := func(same func(marker) bool) bool {
			return find(func(m marker) bool {
				if m.Type != f.Type || !same(m) {
					return false
				}
				f.File, f.Line = m.File, m.Line
				return true
			})
		}
		// A patch can change either.
		if !take(func(m marker) bool { return m.Path == f.Path }) && !take(func(m marker) bool { return m.Name == f.Name }) && len(marked) > 0 {
			notes = append(notes, fmt.Sprintf("%s: webhook %q has no marker: look for what answers %s", f.From, f.Name, f.Path))
		}
	}
	for i, m := range marked {
		if !used[i] {
			notes = append(notes, fmt.Sprintf("%s:%d: webhook %q is left out, because it is not in the manifests", m.File, m.Line, m.Name))
		}
	}
	return notes
}

// webhooksOf are the webhooks of all configurations, in the order in which the API server calls them.
func webhooksOf(objects []*manifest.Object) (found []marker, notes []string, err error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *manifest.Object) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	var errs []error
	for _, object := range objects {
		var of []marker
		var noted []string
		var err error
		switch object.GVK().GroupKind() {
		case schema.GroupKind{Group: admissionregistrationv1.GroupName, Kind: "MutatingWebhookConfiguration"}:
			of, noted, err = mutatingOf(object)
		case schema.GroupKind{Group: admissionregistrationv1.GroupName, Kind: "ValidatingWebhookConfiguration"}:
			of, noted, err = validatingOf(object)
		case schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
			noted, err = conversionOf(object)
		}
		found, notes, errs = append(found, of...), append(notes, noted...), append(errs, err)
	}
	return found, notes, errors.Join(errs...)
}

func mutatingOf(object *manifest.Object) ([]marker, []string, error) {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	if err := decode(object, &configuration); err != nil {
		return nil, nil, err
	}
	return definitionsOf(object, admission.TypeMutating, configuration.Webhooks)
}

func validatingOf(object *manifest.Object) ([]marker, []string, error) {
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := decode(object, &configuration); err != nil {
		return nil, nil, err
	}
	webhooks := make([]admissionregistrationv1.MutatingWebhook, len(configuration.Webhooks))
	for i, w := range configuration.Webhooks {
		webhooks[i] = mutating(w)
	}
	return definitionsOf(object, admission.TypeValidating, webhooks)
}

// decode is strict: a field that is not known would be lost.
func decode(object *manifest.Object, into any) error {
	if version := object.GVK().Version; version != "v1" {
		return object.ErrorAt("/apiVersion", fmt.Sprintf("%s: %q is served no more: give %s/v1", object.Title(), version, admissionregistrationv1.GroupName))
	}
	return object.DecodeStrict(into)
}

func definitionsOf(object *manifest.Object, of admission.Type, webhooks []admissionregistrationv1.MutatingWebhook) (found []marker, notes []string, err error) {
	var errs []error
	for i, w := range webhooks {
		m := marker{From: manifest.PrintableLine(object.Title()), Webhook: admission.Webhook{Type: of}}
		if err := m.takeRendered(w); err != nil {
			errs = append(errs, object.ErrorAt(jsontext.Pointer(fmt.Sprintf("/webhooks/%d", i)), err.Error()))
		}
		found = append(found, m)
	}
	for what, values := range map[string]map[string]string{"annotations": object.Annotations, "labels": object.Labels} {
		if len(values) > 0 {
			notes = append(notes, manifest.Sprintf("%s: its %s have no place in a definition: %s", object.Title(), what, strings.Join(slices.Sorted(maps.Keys(values)), ", ")))
		}
	}
	slices.Sort(notes)
	return found, notes, errors.Join(errs...)
}

// takeRendered takes the definition, which has to be one that the API server accepts.
func (m *marker) takeRendered(w admissionregistrationv1.MutatingWebhook) (err error) {
	var host string
	switch service := w.ClientConfig.Service; {
	case w.ClientConfig.URL != nil && service != nil:
		return errors.New("clientConfig: url and service are mutually exclusive")
	case service != nil:
		host = service.Name
	case w.ClientConfig.URL != nil:
		parsed, err := url.Parse(*w.ClientConfig.URL)
		if err != nil {
			return fmt.Errorf("url: %w", err)
		}
		host = parsed.Host
	}
	if host == "" {
		return fmt.Errorf("webhook %q: clientConfig: neither a service nor a url has a name", w.Name)
	}
	if service := w.ClientConfig.Service; service != nil && service.Path == nil {
		service.Path = new("/") // the API server's default
	}
	if m.Path, m.Reached, err = reached(w.ClientConfig, true); err != nil {
		return fmt.Errorf("webhook %q: %w", w.Name, err)
	}
	if w.FailurePolicy == nil {
		w.FailurePolicy = new(admissionregistrationv1.Fail) // the API server's default
	}
	m.take(w)
	return m.Problems()
}

// conversionOf notes that objects are converted by a webhook.
func conversionOf(object *manifest.Object) ([]string, error) {
	var definition struct {
		Spec struct {
			Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion"`
		} `json:"spec"`
	}
	if err := object.Decode(&definition); err != nil {
		return nil, err
	}
	if c := definition.Spec.Conversion; c == nil || c.Strategy != apiextensionsv1.WebhookConverter {
		return nil, nil
	}
	return []string{object.Title() + ": a webhook converts its objects: give the converter to sallyport.WithConverters"}, nil
}
