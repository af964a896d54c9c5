// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Name identifies the controller in configuration.
const Name = "poddefault-definition"

// Names are the definitions that it looks at.
var Names = []string{
	"clusterpoddefaultrevisions.sallyport.io", "clusterpoddefaults.sallyport.io", "exemptions.sallyport.io", "poddefaultrevisions.sallyport.io", "poddefaults.kubeflow.org",
}

// PolicyRules are the rights that the controller needs in addition to the webhook's.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, ResourceNames: Names, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// Client reads definitions.
type Client interface {
	List(ctx context.Context, options metav1.ListOptions) (*apiextensionsv1.CustomResourceDefinitionList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Options configure a controller.
type Options struct {
	Client Client
	// Own are the definitions of this version.
	Own []*apiextensionsv1.CustomResourceDefinition
	// Leader decides which replica records events. All others compare too.
	Leader  control.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Status shows the result to the rest of the process.
	Status *Status
}

// A Status describes what the served definitions lack. The zero value is ready to use.
type Status struct {
	mu      sync.Mutex
	missing map[string]string // by definition
}

// Detail returns the description; empty if nothing is missing, or known.
func (s *Status) Detail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.missing)) {
		all = append(all, s.missing[name])
	}
	return strings.Join(all, "; ")
}

func (s *Status) set(name, text string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missing == nil {
		s.missing = map[string]string{}
	}
	changed = s.missing[name] != text
	if text == "" {
		delete(s.missing, name)
	} else {
		s.missing[name] = text
	}
	return changed
}

// Controller compares definitions while it runs. See [New].
type Controller struct {
	Options
	clients kubernetes.Interface
	missing *prometheus.GaugeVec
	log     *slog.Logger
}

// New prepares a controller. [Controller.Run] runs it. The credentials in config, and those
// of the client, need the rights of [PolicyRules].
func New(config *rest.Config, options Options) (*Controller, error) {
	if options.Client == nil || len(options.Own) == 0 || options.Leader == nil || options.Logger == nil || options.Metrics == nil || options.Status == nil {
		return nil, errors.New("definition: a client, definitions, a leader, a logger, metrics and a status are needed")
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	c := &Controller{Options: options, clients: clients, log: options.Logger.With("controller", Name), missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sallyport_poddefault_definition_missing_fields",
		Help: "Fields that the served definition of PodDefaults or ClusterPodDefaults lacks, so that the API server removes them from objects, by definition. Absent until the definition is read.",
	}, []string{"definition"})}
	return c, options.Metrics.Register(c.missing)
}

// Run runs until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	stores := make(map[types.NamespacedName]*store.Store[*served], len(c.Own))
	for _, own := range c.Own {
		s := c.watch(own)
		defer s.Handle(store.Handler[*served]{Changed: c.show})()
		running.Go(func() { s.Run(ctx) })
		stores[types.NamespacedName{Name: own.Name}] = s
	}
	frame := control.Frame{Leader: c.Leader, Log: c.log}
	return frame.Run(ctx, func(ctx context.Context, t *control.Term) {
		recorder, stop := control.Events(ctx, Name, c.clients.EventsV1(), c.log)
		t.AtEnd(stop)
		of := &teller{stores, recorder, map[types.NamespacedName]event{}}
		queue := control.NewController(time.Second, time.Minute, of.reconcile)
		for _, s := range stores {
			t.AtEnd(s.HandleNames(func(name types.NamespacedName) { queue.Enqueue(name, 0) }))
		}
		t.Go(func() { queue.Run(ctx, 1) })
	})
}

// served is what is kept of a served definition. Its schema, which is most of it, is not.
type served struct {
	identity store.Identity
	missing  []string
}

// Identity implements [store.Object].
func (s *served) Identity() store.Identity { return s.identity }

// text says what the definition lacks; empty if it lacks nothing, or is not served.
func (s *served) text() string {
	if s == nil || len(s.missing) == 0 {
		return ""
	}
	return Describe(s.identity.Name, s.missing)
}

// watch returns a store of one definition, which is compared with each of its versions.
func (c *Controller) watch(own *apiextensionsv1.CustomResourceDefinition) *store.Store[*served] {
	only := fields.OneTermEqualSelector("metadata.name", own.Name).String()
	return store.New(store.Kind[*apiextensionsv1.CustomResourceDefinition, *served]{
		Name: "definition " + own.Name, Example: &apiextensionsv1.CustomResourceDefinition{}, Longest: 30 * time.Second,
		Keep: func(d *apiextensionsv1.CustomResourceDefinition) *served {
			return &served{store.Identity{NamespacedName: types.NamespacedName{Name: d.Name}, UID: d.UID, ResourceVersion: d.ResourceVersion}, Missing(own, d)}
		},
		From: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = only
				list, err := c.Client.List(ctx, o)
				if err != nil && ctx.Err() == nil { // it is retried with a back-off
					c.log.Warn("definition cannot be watched (may this server list it? sallyport manifests --part rbac prints the permissions)", "definition", own.Name, "error", err)
				}
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = only
				return c.Client.Watch(ctx, o)
			},
		},
	}, c.log)
}

// show reports definitions, as metric, status and log. Of one that was deleted the watch of its objects does.
func (c *Controller) show(changes []store.Change[*served]) {
	for _, change := range changes {
		name, text := change.Object().identity.Name, change.Now.text()
		changed := c.Status.set(name, text)
		if change.Now == nil {
			c.missing.DeleteLabelValues(name)
			continue
		}
		c.missing.WithLabelValues(name).Set(float64(len(change.Now.missing)))
		switch log := c.log.With("definition", name); {
		case changed && text != "":
			log.Error("objects lose fields when they are written", "why", text)
		case changed:
			log.Info("the served definition has all fields of this version again")
		}
	}
}

// eventPause is the time between two events about a definition that stays as it is: events
// live an hour by default.
const eventPause = 50 * time.Minute

// A teller records events about definitions while this replica leads.
type teller struct {
	stores   map[types.NamespacedName]*store.Store[*served]
	recorder events.EventRecorder
	told     map[types.NamespacedName]event
}

type event struct {
	text string
	at   time.Time
}

// reconcile records an event when a definition has changed, and from time to time while it lacks something.
func (t *teller) reconcile(_ context.Context, name types.NamespacedName) (again time.Duration, err error) {
	now, before := t.stores[name].Get(name), t.told[name]
	text := now.text()
	switch left := eventPause - time.Since(before.at); {
	case text == "" && before.text == "":
		return 0, nil
	case text == before.text && left > 0:
		return left, nil
	}
	t.told[name] = event{text, time.Now()}
	if now == nil {
		return 0, nil
	}
	regarding := &corev1.ObjectReference{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
		Name: name.Name, UID: now.identity.UID, ResourceVersion: now.identity.ResourceVersion,
	}
	if text == "" {
		t.recorder.Eventf(regarding, nil, corev1.EventTypeNormal, "FieldsKnown", "Compare", "The definition has all fields of this version of Sallyport again.")
		return 0, nil
	}
	t.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, "FieldsMissing", "Compare", "%s. Apply the definition that 'sallyport manifests --part crd' prints.", strings.ToUpper(text[:1])+text[1:])
	return eventPause, nil
}
