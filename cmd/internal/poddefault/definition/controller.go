// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/internal/control"
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

// Run runs until the context ends. It never returns an error, because the webhook works
// without it.
func (c *Controller) Run(ctx context.Context) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.clients.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil { // it has a sink
		c.log.Warn("there will be no events", "error", err)
	}
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), Name)
	var running sync.WaitGroup
	defer running.Wait()
	for _, own := range c.Own {
		running.Go(func() { c.follow(ctx, own, recorder) })
	}
	return nil
}

// missingAnnotation carries the result in the cache instead of the schema, which is most of
// a definition.
const missingAnnotation = "sallyport.io/missing"

// follow compares one definition with each of its versions.
func (c *Controller) follow(ctx context.Context, own *apiextensionsv1.CustomResourceDefinition, recorder events.EventRecorder) {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", own.Name).String()
		return o
	}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Client.List(ctx, only(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Client.Watch(ctx, only(o))
		},
	}, &apiextensionsv1.CustomResourceDefinition{}, resync, cache.Indexers{})
	var told time.Time
	show := func(item any) {
		if served, ok := item.(*apiextensionsv1.CustomResourceDefinition); ok {
			c.show(served, recorder, &told)
		}
	}
	err := errors.Join(
		informer.SetTransform(func(item any) (any, error) {
			if served, ok := item.(*apiextensionsv1.CustomResourceDefinition); ok && served.Spec.Versions != nil {
				missing, err := json.Marshal(Missing(own, served))
				if err != nil {
					return nil, err
				}
				served.Annotations, served.ManagedFields = map[string]string{missingAnnotation: string(missing)}, nil
				served.Spec = apiextensionsv1.CustomResourceDefinitionSpec{}
			}
			return item, nil
		}),
		informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			if ctx.Err() == nil { // it is retried with a back-off
				c.log.Warn("definition cannot be watched (may this server list it? sallyport manifests --part rbac prints the permissions)", "definition", own.Name, "error", err)
			}
		}),
	)
	if err != nil {
		c.log.Error("definition is not compared", "definition", own.Name, "error", err)
		return
	}
	if _, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    show,
		UpdateFunc: func(_, item any) { show(item) },
		DeleteFunc: func(any) { // the watch of its objects says so
			c.missing.DeleteLabelValues(own.Name)
			c.Status.set(own.Name, "")
		},
	}); err != nil {
		c.log.Error("definition is not compared", "definition", own.Name, "error", err)
		return
	}
	informer.RunWithContext(ctx)
	c.missing.DeleteLabelValues(own.Name)
	c.Status.set(own.Name, "")
}

// resync is how often a replica that has become the leader may notice it.
const resync = 30 * time.Second

// eventPause is the time between two events about a definition that stays as it is: events
// live an hour by default.
const eventPause = 50 * time.Minute

// show reports a definition: as metric, status and log, and the leader also as an event.
func (c *Controller) show(served *apiextensionsv1.CustomResourceDefinition, recorder events.EventRecorder, told *time.Time) {
	var missing []string
	if err := json.Unmarshal([]byte(served.Annotations[missingAnnotation]), &missing); err != nil {
		return // it has a version without a schema yet
	}
	c.missing.WithLabelValues(served.Name).Set(float64(len(missing)))
	text := ""
	if len(missing) > 0 {
		text = Describe(served.Name, missing)
	}
	changed := c.Status.set(served.Name, text)
	log := c.log.With("definition", served.Name)
	switch {
	case changed && text != "":
		log.Error("objects lose fields when they are written", "why", text)
	case changed:
		log.Info("the served definition has all fields of this version again")
	}
	if !c.Leader.Leading() || text == "" && !changed || text != "" && !changed && time.Since(*told) < eventPause {
		return
	}
	regarding := &corev1.ObjectReference{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: served.Name, UID: served.UID, ResourceVersion: served.ResourceVersion,
	}
	if text == "" {
		recorder.Eventf(regarding, nil, corev1.EventTypeNormal, "FieldsKnown", "Compare", "The definition has all fields of this version of Sallyport again.")
		return
	}
	*told = time.Now()
	recorder.Eventf(regarding, nil, corev1.EventTypeWarning, "FieldsMissing", "Compare", "%s. Apply the definition that 'sallyport manifests --part crd' prints.", strings.ToUpper(text[:1])+text[1:])
}
