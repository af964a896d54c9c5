// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sallyport-io/sallyport/internal/store"
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
	Own     []*apiextensionsv1.CustomResourceDefinition
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Status shows the result to the rest of the process.
	Status *Status
}

// A Status describes what the served definitions lack. The zero value is ready to use.
type Status struct{ missing sync.Map } // texts by definition

// Detail returns the description; empty if nothing is missing, or known.
func (s *Status) Detail() string {
	var all []string
	s.missing.Range(func(_, text any) bool {
		if text != "" {
			all = append(all, text.(string))
		}
		return true
	})
	slices.Sort(all) // they begin with the same words and the name
	return strings.Join(all, "; ")
}

// Controller compares definitions while it runs. See [New].
type Controller struct {
	Options
	missing *prometheus.GaugeVec
	log     *slog.Logger
}

// New prepares a controller. [Controller.Run] runs it. The credentials of the client need the
// rights of [PolicyRules].
func New(options Options) (*Controller, error) {
	c := &Controller{Options: options, log: options.Logger.With("controller", Name), missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sallyport_poddefault_definition_missing_fields",
		Help: "Fields that the served definition of PodDefaults or ClusterPodDefaults lacks, so that the API server removes them from objects, by definition. Absent until the definition is read.",
	}, []string{"definition"})}
	return c, options.Metrics.Register(c.missing)
}

// Run runs until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, own := range c.Own {
		s := c.watch(own)
		s.Handle(store.Handler[*served]{Changed: c.show})
		running.Go(func() { s.Run(ctx) })
	}
	return nil
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
		From: store.Limited(c.Client.List, c.Client.Watch, func(o *metav1.ListOptions) { o.FieldSelector = only }, func(ctx context.Context, err error) {
			if err != nil && ctx.Err() == nil { // it is retried with a back-off
				c.log.Warn("definition cannot be watched (may this server list it? sallyport manifests --part rbac prints the permissions)", "definition", own.Name, "error", err)
			}
		}),
	}, c.log)
}

// show reports definitions, as metric, status and log. Of one that was deleted the watch of its objects does.
func (c *Controller) show(changes []store.Change[*served]) {
	for _, change := range changes {
		name, text := change.Object().identity.Name, change.Now.text()
		c.Status.missing.Store(name, text)
		if change.Now == nil {
			c.missing.DeleteLabelValues(name)
			continue
		}
		c.missing.WithLabelValues(name).Set(float64(len(change.Now.missing)))
		switch log := c.log.With("definition", name); {
		case text == change.Before.text():
		case text != "":
			log.Error("objects lose fields when they are written", "why", text)
		default:
			log.Info("the served definition has all fields of this version again")
		}
	}
}
