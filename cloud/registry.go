// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/names"

	"github.com/sallyport-io/sallyport/admission"
)

// Registry has the webhooks of a cloud controller manager, and its controllers unless they
// are passed to [Registry.Command]. Create one with [New]. It makes one command.
type Registry struct {
	webhooks    []*Webhook
	controllers map[string]app.ControllerInitFuncConstructor
	aliases     map[string]string // of controllers
	made        bool
}

// New returns a registry with webhooks. The error reports all of their problems.
func New(webhooks ...Webhook) (*Registry, error) {
	r := &Registry{controllers: map[string]app.ControllerInitFuncConstructor{}, aliases: map[string]string{}}
	var errs []error
	for _, webhook := range webhooks {
		errs = append(errs, r.RegisterWebhook(webhook))
	}
	return r, errors.Join(errs...)
}

// Register adds a mutating webhook for creations and updates of kinds, modified by options.
// Its path is "/" and the name; its name in the webhook configuration is
// NAME.cloud.sallyport.io.
func (r *Registry) Register(name string, kinds []schema.GroupVersionKind, handler func(Dependencies) (admission.Handler, error), options ...Option) error {
	w := Webhook{Name: name, New: handler}
	w.Definition.Name, w.Definition.Path, w.Definition.Type = name+".cloud.sallyport.io", "/"+name, "Mutating"
	w.Definition.Rules = rulesFor(kinds)
	for _, option := range options {
		option(&w)
	}
	return r.RegisterWebhook(w)
}

// RegisterWebhook adds a webhook. A duplicate name, alias or path is an error, and so is
// every problem of the definition.
func (r *Registry) RegisterWebhook(webhook Webhook) error {
	w := webhook.defaulted()
	errs := []error{w.validate()}
	if errs[0] == nil {
		for _, other := range r.webhooks {
			errs = append(errs, w.collides(other)...)
		}
		for i, alias := range w.Aliases {
			if alias == w.Name || slices.Contains(w.Aliases[:i], alias) {
				errs = append(errs, fmt.Errorf("webhook %q: duplicate alias %q", w.Name, alias))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	r.webhooks = append(r.webhooks, &w)
	return nil
}

func (w *Webhook) collides(other *Webhook) (errs []error) {
	taken := append([]string{other.Name}, other.Aliases...)
	for _, name := range append([]string{w.Name}, w.Aliases...) {
		if slices.Contains(taken, name) {
			errs = append(errs, fmt.Errorf("webhook %q: the name %q is taken by webhook %q", w.Name, name, other.Name))
		}
	}
	if w.Definition.Path == other.Definition.Path {
		errs = append(errs, fmt.Errorf("webhook %q: path %s is taken by webhook %q", w.Name, w.Definition.Path, other.Name))
	}
	if w.Definition.Name == other.Definition.Name {
		errs = append(errs, fmt.Errorf("webhook %q: %s is webhook %q already", w.Name, w.Definition.Name, other.Name))
	}
	return errs
}

// DeregisterWebhook removes a webhook by name or alias. It is an error if there is none.
func (r *Registry) DeregisterWebhook(name string) error {
	i := slices.IndexFunc(r.webhooks, func(w *Webhook) bool { return w.Name == name || slices.Contains(w.Aliases, name) })
	if i < 0 {
		return fmt.Errorf("cloud: there is no webhook %q", name)
	}
	r.webhooks = slices.Delete(r.webhooks, i, i+1)
	return nil
}

// RegisterController adds a controller, with aliases for --controllers. A duplicate name or
// alias is an error.
func (r *Registry) RegisterController(name string, constructor app.ControllerInitFuncConstructor, aliases ...string) error {
	var errs []error
	if name == "" || constructor.Constructor == nil {
		errs = append(errs, fmt.Errorf("controller %q: name and constructor are required", name))
	}
	for _, taken := range append([]string{name}, aliases...) {
		if _, there := r.controllers[taken]; there {
			errs = append(errs, fmt.Errorf("controller %q: the name %q is taken by a controller", name, taken))
		}
		if other, there := r.aliases[taken]; there {
			errs = append(errs, fmt.Errorf("controller %q: the name %q is an alias of controller %q", name, taken, other))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	r.controllers[name] = constructor
	for _, alias := range aliases {
		r.aliases[alias] = name
	}
	return nil
}

// RegisterDefaultControllers adds the controllers of k8s.io/cloud-provider, with their
// aliases.
func (r *Registry) RegisterDefaultControllers() error {
	var errs []error
	aliases := names.CCMControllerAliases()
	for _, name := range slices.Sorted(maps.Keys(app.DefaultInitFuncConstructors)) {
		var own []string
		for _, alias := range slices.Sorted(maps.Keys(aliases)) {
			if aliases[alias] == name {
				own = append(own, alias)
			}
		}
		errs = append(errs, r.RegisterController(name, app.DefaultInitFuncConstructors[name], own...))
	}
	return errors.Join(errs...)
}

// DeregisterController removes a controller with its aliases, by name or alias. It is an
// error if there is none.
func (r *Registry) DeregisterController(name string) error {
	if target, isAlias := r.aliases[name]; isAlias {
		name = target
	}
	if _, there := r.controllers[name]; !there {
		return fmt.Errorf("cloud: there is no controller %q", name)
	}
	delete(r.controllers, name)
	maps.DeleteFunc(r.aliases, func(_, target string) bool { return target == name })
	return nil
}
