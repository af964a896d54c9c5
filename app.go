// SPDX-License-Identifier: Apache-2.0

// Package sallyport builds applications of admission webhooks and controllers, served
// by one binary as one process or as two.
//
//	app, err := sallyport.New("crontab-operator",
//		sallyport.WithWebhooks(
//			admission.Mutating("default.crontab.example.com", rules, admission.Mutate(setDefaults)),
//			admission.Validating("check.crontab.example.com", rules, admission.Validate(check)),
//		),
//		sallyport.WithController("crontab", crontab.SetupWithManager),
//	)
//
// [App.Command] turns it into a command with flags, [App.Run] runs it inside your own
// program, and [App.Handler] serves it from your own server.
package sallyport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/hosting/controllers"
)

// App is an application. Create one with [New].
type App struct {
	name        string
	version     string
	webhooks    []admission.Webhook
	converters  []conversion.Converter
	crds        []*apiextensionsv1.CustomResourceDefinition
	rules       []rbacv1.PolicyRule
	components  []component
	controllers []controller
	// managerOptions modify the options of the controllers' manager.
	managerOptions []func(*manager.Options)
	migrated       []string // names of CRDs, each with a component
	kinds          []CachedKind
	// manage sets up the chosen controllers in a manager, and checkConversions makes the
	// command convert. The options that need them set them: direct calls would link
	// controller-runtime's manager and the command into every program.
	manage           func(_ *Settings, _ *chosen, _ *rest.Config, changed func()) (*controllers.Manager, error)
	checkConversions func(application string, flags clusterflags.Flags, converters []conversion.Converter) *cobra.Command
	// authentications are the modes of authentication besides the built-in ones.
	authentications []authentication
	scheme          *runtime.Scheme // of controllers; nil means client-go's

	problems []error
	schemes  []*runtime.Scheme // of the types
	derived  []string          // kinds whose converters come from types
	plurals  []string          // resources that types name, see [Type]
}

type component struct {
	build    func(Environment) (Component, error)
	declares bool // its component declares its content, so it provides no webhooks when built
}

type controller struct {
	name  string
	setup func(manager.Manager) error
}

// New returns an application. The name is a DNS label, for example "crontab-operator".
// It names the command and, by default, the application's objects in a cluster. The
// error reports all problems; a collision names both sides.
func New(name string, options ...Option) (*App, error) {
	a := &App{name: name, version: cli.BuildVersion()}
	for _, problem := range validation.IsDNS1123Label(name) {
		a.problem("name %q: %s", name, problem)
	}
	a.apply(options)
	checkWebhooks(a)
	checkResources(a)
	checkConverters(a)
	checkCRDs(a)
	checkControllers(a)
	checkCaches(a)
	checkAuthentications(a)
	if len(a.webhooks) == 0 && len(a.converters) == 0 && len(a.components) == 0 && len(a.controllers) == 0 && len(a.problems) == 0 {
		a.problem("there is nothing to run: add webhooks, converters or controllers")
	}
	if err := errors.Join(a.problems...); err != nil {
		return nil, fmt.Errorf("application %s: %w", name, err)
	}
	return a, nil
}

func (a *App) apply(options []Option) {
	for i, option := range options {
		if option == nil {
			a.problem("option %d is nil: leave it out", i+1)
			continue
		}
		option(a)
	}
}

// Webhooks returns the definitions, given or derived from types.
func (a *App) Webhooks() []admission.Webhook { return append([]admission.Webhook(nil), a.webhooks...) }

func (a *App) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Errorf(format, args...))
}

// checkWebhooks also checks that handlers read the kinds that their rules send, as far as
// schemes are known.
func checkWebhooks(a *App) {
	for _, webhook := range a.webhooks {
		if err := webhook.Problems(knownSchemes(a)...); err != nil {
			a.problems = append(a.problems, err)
		}
	}
	a.problems = append(a.problems, collisions(a.webhooks)...)
}

func knownSchemes(a *App) []*runtime.Scheme {
	schemes := append([]*runtime.Scheme{clientscheme.Scheme}, a.schemes...)
	if a.scheme != nil {
		schemes = append(schemes, a.scheme)
	}
	return schemes
}

// reserved are paths of the server itself.
var reserved = []string{"/livez", "/readyz", "/metrics"}

// collisions reports duplicate names and paths.
func collisions(webhooks []admission.Webhook) []error {
	var errs []error
	for i, w := range webhooks {
		for _, path := range reserved {
			if w.Path == path {
				errs = append(errs, fmt.Errorf("webhook %q: path: %s is the server's own", w.Name, path))
			}
		}
		for _, other := range webhooks[:i] {
			if other.Name == w.Name {
				errs = append(errs, fmt.Errorf("two webhooks have the name %q: the %s one at %s and the %s one at %s",
					w.Name, strings.ToLower(string(other.Type)), other.Path, strings.ToLower(string(w.Type)), w.Path))
			}
			if other.Path == w.Path {
				errs = append(errs, fmt.Errorf("two webhooks have the path %s: %q and %q", w.Path, other.Name, w.Name))
			}
		}
	}
	return errs
}

func checkControllers(a *App) {
	for i, c := range a.controllers {
		for _, problem := range validation.IsDNS1123Label(c.name) {
			a.problem("controller %q: name: %s", c.name, problem)
		}
		if c.setup == nil {
			a.problem("controller %q: the function that sets it up is missing", c.name)
		}
		for j, other := range a.controllers[:i] {
			if other.name == c.name {
				a.problem("two controllers have the name %q: the ones registered as number %d and number %d", c.name, j+1, i+1)
			}
		}
	}
	if len(a.managerOptions) > 0 && a.manage == nil {
		a.problem("WithManagerOptions: there is no manager: add controllers or caches, or leave it out")
	}
	if slices.ContainsFunc(a.managerOptions, func(change func(*manager.Options)) bool { return change == nil }) {
		a.problem("WithManagerOptions: the function is missing")
	}
	if a.manage == nil || a.scheme != nil {
		return
	}
	for _, scheme := range a.schemes {
		if a.scheme != nil && scheme != a.scheme {
			a.problem("the types have several schemes: say with WithScheme which one controllers and caches use")
			return
		}
		a.scheme = scheme
	}
}
