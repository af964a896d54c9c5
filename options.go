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

// Option configures an application; see [New].
type Option func(*App)

// WithWebhooks adds admission webhooks. Mutating webhooks are called in this order.
func WithWebhooks(webhooks ...admission.Webhook) Option {
	return func(a *App) { a.webhooks = append(a.webhooks, webhooks...) }
}

// WithController adds controllers of controller-runtime. Setup is called before the
// manager starts. It adds runnables to the manager, but no webhooks: those belong to
// the application. All controllers share one manager with its cache and leader
// election. Declares are options for what belongs to the controller: webhooks,
// converters, caches and rights. They are known without running it.
func WithController(name string, setup func(manager.Manager) error, declares ...Option) Option {
	return func(a *App) {
		a.manage = a.newManager
		a.controllers = append(a.controllers, controller{name, setup})
		a.apply(declares)
	}
}

// WithManagerOptions modifies the options of the controllers' manager, for example the
// content of its cache. Several changes run in order, starting from the settings.
// Listeners, webhook server and leader election belong to the application: a run fails
// with an error that names changed ones.
func WithManagerOptions(change func(*manager.Options)) Option {
	return func(a *App) { a.managerOptions = append(a.managerOptions, change) }
}

// WithScheme sets the scheme of the controllers' manager. The default is the scheme of
// [WithTypes], or else client-go's.
func WithScheme(scheme *runtime.Scheme) Option {
	return func(a *App) {
		if scheme == nil {
			a.problem("WithScheme: the scheme is missing: pass one, or leave the option out")
		}
		a.scheme = scheme
	}
}

// Scheme returns the application's scheme: that of [WithScheme], the first one of
// [WithTypes], or client-go's.
func (a *App) Scheme() *runtime.Scheme {
	switch {
	case a.scheme != nil:
		return a.scheme
	case len(a.schemes) > 0:
		return a.schemes[0]
	}
	return clientscheme.Scheme
}

// WithVersion sets the version that the application logs and sends to the API server.
// The default is Go's build information.
func WithVersion(version string) Option { return func(a *App) { a.version = version } }

// WithComponent adds something that webhooks depend on, for example a cache filled from
// a registry. Build is called for each run.
//
// Declares are options for what belongs to the component: [WithWebhooks],
// [WithConverters], [WithCache], [WithPolicyRules]. They are known without running it,
// also to the command manifests. A component without them may provide its webhooks when
// it is built.
func WithComponent(build func(Environment) (Component, error), declares ...Option) Option {
	return func(a *App) {
		if build == nil {
			a.problem("WithComponent: the function that builds component %d is missing: pass one, or give its options to New", len(a.components)+1)
		}
		a.components = append(a.components, component{build, len(declares) > 0})
		a.apply(declares)
	}
}

// Environment is what a run provides to components.
type Environment struct {
	// Client is the client configuration for the API server.
	Client *rest.Config
	Logger *slog.Logger
	// Metrics are served at /metrics.
	Metrics prometheus.Registerer
	// Changed notifies the run that a component's Ready or Registered has changed. It
	// does not block. Without a notification, Ready is polled every second.
	Changed func()
	// Leader returns the leader election, for work that only one replica may do. A
	// component that calls it while it is built makes the application take part in an
	// election, see [registration.LeaderElectionSettings]. A replica without an election always
	// leads.
	Leader func() Leader
	// Cache reads the kinds of [WithCache] once the application is ready.
	Cache client.Reader
}

// Leader is the leader election between replicas. All of them serve, whichever leads.
type Leader interface {
	// Leading reports whether this replica leads.
	Leading() bool
	// Changed returns a channel that is closed when Leading changes next; nil means
	// never.
	Changed() <-chan struct{}
}

// Component is something that webhooks depend on. It runs until the last review is
// answered.
type Component struct {
	// Name identifies the component in /readyz.
	Name string
	// Webhooks are webhooks that are not known before the component is built, for
	// example because they depend on a file. A component that declares anything must
	// declare all of its webhooks; see [WithComponent]. They are served while the
	// application runs.
	Webhooks []admission.Webhook
	// Registered returns the current definitions of those webhooks to register. It may
	// change everything except names, paths and types, and the result must be valid.
	// See [Environment.Changed]. It must be fast. Nil registers all webhooks,
	// unchanged.
	Registered func() []admission.Webhook
	// Ready returns nil once the component can serve reviews, and otherwise the reason.
	// Until then no review is answered and nothing is registered. Call
	// [Environment.Changed] when it changes. It must be fast. Nil means ready at once.
	Ready func() error
	// Detail returns what /readyz?verbose shows next to the name of a ready component;
	// it may be empty. Nil shows nothing. It must be fast.
	Detail func() string
	// Run runs until the context ends, and then returns nil. An error ends the
	// application. May be nil.
	Run func(ctx context.Context) error
	// Status is logged when the application is ready. May be nil.
	Status func() slog.Attr
}
