// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport/admission"
)

// Option adds to an application; see [New].
type Option func(*App)

// WithWebhooks adds admission webhooks. Mutating ones are called in this order.
func WithWebhooks(webhooks ...admission.Webhook) Option {
	return func(a *App) { a.webhooks = append(a.webhooks, webhooks...) }
}

// WithController adds controllers of controller-runtime. Setup is called before the
// manager starts; it adds to it what there is to run, and no webhooks: those belong
// to the application. All controllers share one manager, with its cache and its
// leader election. Declares are options for what belongs to the controller: its webhooks,
// converters, caches and rights, which are known without running it.
func WithController(name string, setup func(manager.Manager) error, declares ...Option) Option {
	return func(a *App) {
		a.manage = a.newManager
		a.controllers = append(a.controllers, controller{name, setup})
		a.apply(declares)
	}
}

// WithManagerOptions changes the options of the controllers' manager, for example what its
// cache holds; several changes are made in their order. Options start as the settings say.
// Listeners, webhook server and leader election are the application's: a run fails with an error
// that names what was changed of them.
func WithManagerOptions(change func(*manager.Options)) Option {
	return func(a *App) { a.managerOptions = append(a.managerOptions, change) }
}

// WithScheme says which types the controllers' manager knows. Without it they are
// those of the scheme given to [WithTypes], or else client-go's.
func WithScheme(scheme *runtime.Scheme) Option { return func(a *App) { a.scheme = scheme } }

// Scheme knows the types of the application: the scheme of [WithScheme], or else the first one
// of [WithTypes], or else client-go's.
func (a *App) Scheme() *runtime.Scheme {
	switch {
	case a.scheme != nil:
		return a.scheme
	case len(a.schemes) > 0:
		return a.schemes[0]
	}
	return clientscheme.Scheme
}

// WithVersion says what the application calls itself in its log and to the API
// server. Without it it is what Go knows of the build.
func WithVersion(version string) Option { return func(a *App) { a.version = version } }

// WithComponent adds something that webhooks stand on, for example a cache that is
// filled from a registry. Build is called for each run.
//
// Declares are options for what belongs to the component: [WithWebhooks], [WithConverters],
// [WithCache], [WithPolicyRules]. They are known without running it, to the command manifests
// too. A component without them may tell its webhooks when it is built.
func WithComponent(build func(Environment) (Component, error), declares ...Option) Option {
	return func(a *App) {
		a.components = append(a.components, component{build, len(declares) > 0})
		a.apply(declares)
	}
}

// Environment is what a run gives to components.
type Environment struct {
	// Client says how to reach the API server.
	Client *rest.Config
	Logger *slog.Logger
	// Metrics are shown by /metrics.
	Metrics prometheus.Registerer
	// Changed is for components whose Ready or Registered has changed. It does not wait.
	// A Ready of which it does not tell is asked again within a second.
	Changed func()
	// Leader is for components that do something which only one of several replicas
	// shall do. Who asks for it while it is built makes the application take part in an
	// election, see [LeaderElectionSettings]; one that takes part in none always leads.
	Leader func() Leader
	// Cache reads what [WithCache] declares, once the application is ready.
	Cache client.Reader
}

// Leader tells which of several replicas does what only one shall do. All of them
// serve, whoever leads.
type Leader interface {
	// Leading tells whether this one leads now.
	Leading() bool
	// Changed returns a channel that is closed when Leading changes next; nil if it
	// never does.
	Changed() <-chan struct{}
}

// Component is something that webhooks stand on. It is there until the last review is
// answered.
type Component struct {
	// Name is what /readyz calls it.
	Name string
	// Webhooks are those that are not known before it is built, because they follow a file for
	// example. A component that declares something declares all of its webhooks; see
	// [WithComponent]. They are answered as long as the application runs.
	Webhooks []admission.Webhook
	// Registered are those of them that the API server is told of, as they are now; nil
	// means all, always. What it returns may differ in everything but names, paths and
	// types, and must be valid. See [Environment.Changed]. It must be fast.
	Registered func() []admission.Webhook
	// Ready returns nil once reviews can be answered, otherwise why not. No review is
	// answered, and nothing registered, before. Call [Environment.Changed] then. It must
	// be fast. Nil means at once.
	Ready func() error
	// Detail is what /readyz?verbose says beside the name while it is ready, empty for
	// nothing. Nil means nothing. It must be fast.
	Detail func() string
	// Run works until the context ends, and then returns nil. An error ends the
	// application. Nil means that there is nothing to do.
	Run func(ctx context.Context) error
	// Status is logged when the application is ready. May be nil.
	Status func() slog.Attr
}
