// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/install"
)

// Builtin is a row of [Builtins]: a ready-made webhook, which is a folder, and what belongs to it. It
// may define several webhooks that belong together.
type Builtin struct {
	Name  string // of the folder, and in a configuration
	Short string // one line
	Docs  string // its page, relative to the root of the repository

	// byDefault is set if it is enabled without a configuration. New webhooks are opt-in.
	byDefault bool
	// settings returns a pointer to its default settings; nil if it has none.
	settings func() settings
	// none returns sources for definitions that are never called; nil if it reads nothing.
	none func() Sourced
	// webhooks defines it, given its sources.
	webhooks func(*Config, Sources) ([]admission.Webhook, error)
	// previews returns what a webhook for pods would do to one that does not exist yet; nil if it is for other objects.
	previews func(*Config, Sources) (preview, error)
	// watch watches the objects that it reads; nil if it reads none.
	watch func(*liveBuiltin, frontdoor.Environment) (watcher, error)
	// running returns what its watch and its controllers share while a server runs; nil for nothing.
	running func() any
	// controllers run beside it.
	controllers []controller

	// rights are the rules that watch needs; moreRights are needed only with some settings, nil
	// for none.
	rights     []rbacv1.PolicyRule
	moreRights func(*Config) []rbacv1.PolicyRule
	// rightsIn are the rules that some settings need in some namespaces; nil for none.
	rightsIn func(*Config) map[string][]rbacv1.PolicyRule
	// registers are the rules to write what is registered beside its webhooks; nil for none.
	registers func(*Config) []rbacv1.PolicyRule
	// needs returns an error while objects that the settings name have not been read; nil if
	// settings never name objects.
	needs func(*Config, Sources) error
	// widen changes settings so that they define every webhook that any settings can define;
	// nil if the defaults do.
	widen func(*Config)
	// fixed names the webhooks to which the terms of an entry do not apply.
	fixed []string
	// keepsNames says why its webhooks cannot be renamed; empty if they can.
	keepsNames string
	// adjust has the last word about a webhook before it is registered, given what the entry says of
	// its failure policy; nil for none.
	adjust func(*Config, *admission.Webhook)
	// validate reports settings that conflict with others of the configuration; nil for none.
	validate func(*Config) field.ErrorList
	// afterRestart are settings that take effect after a restart.
	afterRestart []restarted
}

// A preview returns why a pod would be refused and what it would lack, as ends of a sentence about it.
type preview = func(ctx context.Context, pod *admissionv1.AdmissionRequest) ([]string, error)

// restarted is a setting that takes effect after a restart.
type restarted struct {
	name string
	same func(a, b *Config) bool
	// keep sets it to that of the start; nil if it may be read before.
	keep func(next, start *Config)
}

// Default returns the definitions with the default settings, for documentation and validation.
// They are never called.
func (b Builtin) Default() ([]admission.Webhook, error) {
	return b.webhooks(&Config{Settings: DefaultSettings()}, NoSources())
}

// Settings are the settings of the built-in webhooks by name, pointers to structs.
type Settings map[string]settings

// settings are the settings of one built-in webhook, with JSON field names.
type settings interface{ Validate() error }

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	all := Settings{}
	for _, b := range Builtins() {
		if b.settings != nil {
			all[b.Name] = b.settings()
		}
	}
	return all
}

// Sources are what built-in webhooks read from.
type Sources map[string]Sourced

// Sourced is what one built-in webhook reads from.
type Sourced interface{ of() string } // the name of the webhook

// From returns the sources of some built-in webhooks.
func From(sources ...Sourced) Sources {
	all := Sources{}
	for _, one := range sources {
		all[one.of()] = one
	}
	return all
}

// sourcesOf returns the sources of one built-in webhook; empty ones if it has none.
func sourcesOf[T Sourced](all Sources) T {
	var none T
	if known, ok := all[none.of()].(T); ok {
		return known
	}
	return none
}

// NoSources returns empty sources, for definitions that are never called.
func NoSources() Sources {
	var all []Sourced
	for _, b := range Builtins() {
		if b.none != nil {
			all = append(all, b.none())
		}
	}
	return From(all...)
}

// watcher watches objects in a cluster, for one built-in webhook.
type watcher struct {
	sources Sourced
	what    string // what it counts, for the log and the metric's name
	help    string
	ready   func() error
	run     func(context.Context) error
	count   func() int
	contact func() time.Time // the time of the last message from the API server; may be nil
}

// Enabled returns the enabled webhooks in call order.
func (c *Config) Enabled() []Builtin {
	var out []Builtin
	for _, b := range Builtins() {
		if c.Has(b.Name) {
			out = append(out, b)
		}
	}
	return out
}

// previews returns what the enabled webhooks for pods would do to pods that do not exist yet.
func (c *Config) previews(from Sources) (all []preview, err error) {
	for _, b := range c.Enabled() {
		if b.previews == nil {
			continue
		}
		one, err := b.previews(c, from)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", b.Name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Define defines the enabled webhooks. serve, review and manifests share it.
func (c *Config) Define(from Sources) ([]admission.Webhook, error) {
	var webhooks []admission.Webhook
	var errs []error
	for _, b := range c.Enabled() {
		more, err := b.defined(c, from)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", b.Name, err))
		}
		webhooks = append(webhooks, more...)
	}
	return webhooks, errors.Join(errs...)
}

// Rights returns the rules that the enabled webhooks and controllers need to read from a
// cluster and to write status, without duplicates.
func (c *Config) Rights() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, b := range c.Enabled() {
		rules = distinct(rules, b.rights)
		if b.moreRights != nil {
			rules = distinct(rules, b.moreRights(c))
		}
	}
	for _, one := range c.enabledControllers() {
		rules = distinct(rules, one.rights)
	}
	return rules
}

// RightsIn returns the rules needed in single namespaces.
func (c *Config) RightsIn() map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, b := range c.Enabled() {
		if b.rightsIn != nil {
			for namespace, more := range b.rightsIn(c) {
				rules[namespace] = distinct(rules[namespace], more)
			}
		}
	}
	return rules
}

// Paths returns the paths of the enabled webhooks, for any settings of their own.
func (c *Config) Paths() ([]string, error) {
	widened := *c
	widened.Settings = DefaultSettings()
	for _, b := range c.Enabled() {
		if b.widen != nil {
			b.widen(&widened)
		}
	}
	webhooks, err := widened.Define(NoSources())
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, webhook := range webhooks {
		paths = append(paths, webhook.Path)
	}
	slices.Sort(paths)
	return paths, nil
}

// distinct joins rules without duplicates: a controller may read the same objects as its
// webhook.
func distinct(lists ...[]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range slices.Concat(lists...) {
		if !slices.ContainsFunc(out, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(known, rule) }) {
			out = append(out, rule)
		}
	}
	return out
}

// Names returns the names of all built-in webhooks.
func Names() []string {
	var names []string
	for _, b := range Builtins() {
		names = append(names, b.Name)
	}
	return names
}

// InstallRights returns exactly the permissions of a server with this configuration.
func InstallRights(c *Config, serviceAccount string) install.Rights {
	rights := install.Rights{
		Registration: c.AppRegistration(), Certificate: c.Certificate, LeaderElection: c.LeaderElection, ServiceAccount: serviceAccount,
		Rules: c.Rights(), RulesIn: c.RightsIn(),
	}
	for _, b := range c.Enabled() {
		if b.registers != nil {
			rights.Rules = append(rights.Rules, b.registers(c)...)
		}
	}
	if c.Controls() {
		rights.ComponentsOf = Name
	}
	return rights
}
