// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
)

// all returns the definitions of every webhook that any settings can define. They are
// never called.
func (b *Builtin) all() ([]admission.Webhook, error) {
	c := &Config{Settings: DefaultSettings()}
	if b.widen != nil {
		b.widen(c)
	}
	return b.webhooks(c, NoSources())
}

// place gives webhooks the paths and names of an entry, which may be nil. The first one
// answers at [configv1alpha1.Webhook.Path] for all.
func (b *Builtin) place(entry *configv1alpha1.Webhook, webhooks []admission.Webhook) error {
	if entry == nil || len(webhooks) == 0 {
		return nil
	}
	if entry.ReinvocationPolicy != nil && !slices.ContainsFunc(webhooks, func(w admission.Webhook) bool { return w.Type == admission.TypeMutating }) {
		return fmt.Errorf("%s: reinvocationPolicy is for mutating webhooks, and this one validates: remove it", webhooks[0].Name)
	}
	if entry.Path != nil {
		all := halves(slices.Clone(webhooks))
		webhooks[0].Path = *entry.Path
		if len(all) > 1 {
			webhooks[0].Handler = all
		}
	}
	for i := range webhooks {
		w := &webhooks[i]
		if path, ok := entry.Paths[w.Name]; ok {
			w.Path = path
		}
		if name, ok := entry.Names[w.Name]; ok {
			w.Name = name
		}
	}
	return nil
}

// answerAtPath lets the webhooks of a state answer at the configured path of the entry if its
// first webhook, which is there, is not among them.
func (b *liveBuiltin) answerAtPath(state *builtinState) error {
	entry := state.config.entry(b.Name)
	if entry == nil || entry.Path == nil || len(state.webhooks) == 0 {
		return nil
	}
	all, err := b.all()
	if err != nil {
		return err
	}
	if err := b.place(entry, all); err != nil {
		return err
	}
	first := all[0].Name
	if !slices.ContainsFunc(state.webhooks, func(w admission.Webhook) bool { return w.Name == first }) {
		state.handlers[first] = state.webhooks[0].Handler
	}
	return nil
}

// names reports whether a name is that of one of the entry's webhooks.
func names(entry *configv1alpha1.Webhook, webhook string) bool {
	if slices.Contains(slices.Collect(maps.Values(entry.Names)), webhook) {
		return true
	}
	_, renamed := entry.Names[webhook]
	return !renamed && strings.HasSuffix("."+webhook, "."+entry.Name+".sallyport.io")
}

// keepPlaces keeps the paths and names of another configuration.
func (c *Config) keepPlaces(of *Config) {
	c.Webhooks = slices.Clone(c.Webhooks)
	for i := range c.Webhooks {
		entry, kept := &c.Webhooks[i], of.entry(c.Webhooks[i].Name)
		if kept == nil {
			kept = &configv1alpha1.Webhook{}
		}
		entry.Path, entry.Paths, entry.Names = kept.Path, kept.Paths, kept.Names
	}
}

// samePlaces reports whether another configuration has the same paths and names for a
// built-in webhook.
func (c *Config) samePlaces(name string, other *Config) bool {
	was, is := configv1alpha1.Webhook{}, configv1alpha1.Webhook{}
	if entry := c.entry(name); entry != nil {
		was = *entry
	}
	if entry := other.entry(name); entry != nil {
		is = *entry
	}
	return (was.Path == nil) == (is.Path == nil) && (was.Path == nil || *was.Path == *is.Path) &&
		maps.Equal(was.Paths, is.Paths) && maps.Equal(was.Names, is.Names)
}

// placed is 1 if an entry has a path or name of its own, and otherwise 0.
func (c *Config) placed(name string) int {
	if entry := c.entry(name); entry != nil && (entry.Path != nil || len(entry.Paths)+len(entry.Names) > 0) {
		return 1
	}
	return 0
}

// validatePlaces reports paths and names that no webhook has, that two webhooks have, or
// that cannot be changed. A webhook that is not enabled counts too: serve answers for it as
// soon as the file enables it.
func (c *Config) validatePlaces(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type owner struct{ webhook, half string }
	paths, known := map[string]owner{}, map[string]owner{}
	builtins := Builtins()
	slices.SortStableFunc(builtins, func(a, b Builtin) int { return c.placed(a.Name) - c.placed(b.Name) }) // what can be changed is reported
	for _, b := range builtins {
		webhooks, err := b.all()
		if err != nil {
			continue // reported with the definitions
		}
		entry := c.entry(b.Name)
		if entry == nil {
			entry = &configv1alpha1.Webhook{Name: b.Name}
		}
		at := path.Index(slices.IndexFunc(c.Webhooks, func(w configv1alpha1.Webhook) bool { return w.Name == b.Name }))
		var halves []string
		for _, w := range webhooks {
			halves = append(halves, w.Name)
		}
		for _, half := range slices.Sorted(maps.Keys(entry.Paths)) {
			if !slices.Contains(halves, half) {
				errs = append(errs, field.NotSupported(at.Child("paths").Key(half), half, halves))
			}
		}
		for _, half := range slices.Sorted(maps.Keys(entry.Names)) {
			if !slices.Contains(halves, half) && b.keepsNames == "" {
				errs = append(errs, field.NotSupported(at.Child("names").Key(half), half, halves))
			}
		}
		if len(entry.Names) > 0 && b.keepsNames != "" {
			errs = append(errs, field.Forbidden(at.Child("names"), b.keepsNames))
			continue
		}
		if _, twice := entry.Paths[halves[0]]; twice && entry.Path != nil {
			errs = append(errs, field.Forbidden(at.Child("paths").Key(halves[0]), "path is the path of this webhook: remove one of them"))
			continue
		}
		if b.place(entry, webhooks) != nil {
			continue // reported with the definitions
		}
		for i, w := range webhooks {
			place, name := at.Child("paths").Key(halves[i]), at.Child("names").Key(halves[i])
			if i == 0 && entry.Path != nil {
				place = at.Child("path")
			}
			if slices.Contains([]string{"/livez", "/readyz", "/metrics"}, w.Path) {
				errs = append(errs, field.Invalid(place, w.Path, "it is the server's own"))
			}
			if other, ok := paths[w.Path]; ok {
				remedy := "choose another one"
				if other.webhook == b.Name {
					remedy = "set only path, which answers for all webhooks of the entry"
				}
				errs = append(errs, field.Invalid(place, w.Path, "it is the path of "+other.half+", too: "+remedy))
			}
			if other, ok := known[w.Name]; ok {
				errs = append(errs, field.Invalid(name, w.Name, "it is the name of "+other.half+", too: choose another one"))
			}
			paths[w.Path], known[w.Name] = owner{b.Name, halves[i]}, owner{b.Name, halves[i]}
		}
	}
	return errs
}
