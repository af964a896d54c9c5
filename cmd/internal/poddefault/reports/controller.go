// SPDX-License-Identifier: Apache-2.0

// Package reports writes what the webhook finds as Report objects of OpenReports
// (openreports.io/v1alpha1): one in each namespace, with refused workloads, what objects in
// mode Audit would do, and PodDefaults that conflict. It is off unless it is named in
// the configuration.
//
// Only the replica that answers for a pod knows its findings, so each replica adds its own
// to the report, as each one reports refusals in the status of rollouts. Only the leader
// writes conflicts, and removes what has aged or does not hold any more. A write depends
// on the resourceVersion that was read, so replicas never overwrite each other, and what a
// report has already is not written again.
package reports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

const (
	// Name identifies the controller in configuration.
	Name = "poddefault-reports"
	// ReportName is the name of the report in each namespace.
	ReportName = "sallyport"

	managedByLabel, managedBy = "app.kubernetes.io/managed-by", "sallyport"
)

// Resource is the resource of reports.
var Resource = openreports.SchemeGroupVersion.WithResource("reports")

// PolicyRules are the rights that the controller needs in addition to the webhook's.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{Resource.Group}, Resources: []string{Resource.Resource}, Verbs: []string{"get", "list", "create", "update", "delete"}}}
}

// Options configure a controller.
type Options struct {
	// Watcher provides the objects. It must run.
	Watcher *source.Watcher
	// Recorder has what the handlers of this replica find.
	Recorder *Recorder
	// Leader decides which replica cleans up.
	Leader  control.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Controller writes reports. See [poddefault.New].
type Controller struct {
	Options
	log      *slog.Logger
	client   *rest.RESTClient
	metadata metadata.Interface
	writes   *prometheus.CounterVec
	pace     pace
	now      func() time.Time

	queue   *control.Controller[string]
	limit   *rate.Limiter
	leading atomic.Pointer[leadership] // nil while another replica leads

	mu sync.Mutex
	// unavailable is why no report can be written: the definition or a right is missing.
	// Nothing is tried before until.
	unavailable string
	until       time.Time
}

// pace limits how often reports are read and written.
type pace struct {
	// quiet is how long a finding waits for others of its namespace.
	quiet time.Duration
	// perSecond limits requests for all namespaces, and burst those at once.
	perSecond rate.Limit
	burst     int
	// first and longest are the delays after failures.
	first, longest time.Duration
	// unavailable is the delay while no report can be written.
	unavailable time.Duration
	// again is how often the leader looks for reports of other replicas.
	again time.Duration
}

var defaultPace = pace{
	quiet: 10 * time.Second, perSecond: 5, burst: 10, first: time.Second, longest: 5 * time.Minute,
	unavailable: 30 * time.Second, again: 10 * time.Minute,
}

// New prepares a controller. [Controller.Run] runs it. The credentials in config must
// have the rights of [PolicyRules].
func New(config *rest.Config, options Options) (*Controller, error) {
	if options.Watcher == nil || options.Recorder == nil || options.Leader == nil || options.Logger == nil || options.Metrics == nil {
		return nil, errors.New("reports: a watcher, a recorder, a leader, a logger and metrics are needed")
	}
	c := &Controller{Options: options, log: options.Logger.With("controller", Name), pace: defaultPace, now: time.Now}
	var err error
	if c.client, err = store.Client(config, openreports.SchemeGroupVersion, openreports.Install); err != nil {
		return nil, fmt.Errorf("client for reports: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("client for metadata of reports: %w", err)
	}
	c.writes, err = newMetrics(options.Metrics)
	return c, err
}

// Run runs until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	c.queue = control.NewController(c.pace.first, c.pace.longest, c.reconcile)
	c.limit = rate.NewLimiter(c.pace.perSecond, c.pace.burst)
	c.Recorder.notify(c.enqueue)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.queue.Run(ctx, 1) })
	frame := control.Frame{Leader: c.Leader, Log: c.log, Ready: c.Watcher.WaitReady}
	return frame.Run(ctx, c.lead)
}

func (c *Controller) enqueue(namespace string) { c.queue.Enqueue(namespace, c.pace.quiet) }

// reconcile writes the report of a namespace if it differs from what it should be.
func (c *Controller) reconcile(ctx context.Context, namespace string) (again time.Duration, err error) {
	if wait := c.waits(); wait > 0 {
		return wait, nil
	}
	leading := c.leading.Load()
	known := leading.state(namespace)
	taken := c.Recorder.take(namespace)
	if known == nil && len(taken.results)+taken.leftOut == 0 {
		return 0, nil
	}
	defer func() {
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), errors.Is(err, errNoNamespace):
			again, err = 0, nil // the findings go with the namespace
		case err != nil:
			c.Recorder.give(namespace, taken)
			again, err = c.failed(ctx, namespace, err)
		}
	}()
	if err := c.limit.Wait(ctx); err != nil {
		return 0, err
	}
	have := &openreports.Report{}
	err = c.client.Get().Namespace(namespace).Resource(Resource.Resource).Name(ReportName).Do(ctx).Into(have)
	if apierrors.IsNotFound(err) {
		have = &openreports.Report{}
	} else if err != nil {
		return 0, denied(err)
	}
	there := have.UID != ""
	if there && have.Labels[managedByLabel] != managedBy {
		return 0, fmt.Errorf("report %s/%s has no label %s=%s: rename it, or add the label to have it overwritten", namespace, ReportName, managedByLabel, managedBy)
	}
	next := have.DeepCopy()
	fill(next, namespace, compose(namespace, have.Results, taken.found(), known, c.now()))
	switch {
	case len(next.Results) == 0 && !there:
		return 0, nil // also if there is no definition
	case equality.Semantic.DeepEqual(have, next):
	case len(next.Results) == 0:
		err = c.written(c.client.Delete().Namespace(namespace).Resource(Resource.Resource).Name(ReportName).Body(&metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion},
		}).Do(ctx).Error())
	case !there:
		err = c.written(absent(c.client.Post().Namespace(namespace).Resource(Resource.Resource).Body(next).Do(ctx).Error()))
	default:
		err = c.written(c.client.Put().Namespace(namespace).Resource(Resource.Resource).Name(ReportName).Body(next).Do(ctx).Error())
	}
	if err != nil {
		return 0, err
	}
	c.available()
	if known == nil {
		return 0, nil
	}
	leading.has(namespace, len(next.Results) > 0)
	if len(next.Results) == 0 {
		return 0, nil
	}
	return max(expiry(next.Results, c.now()).Sub(c.now()), time.Minute), nil
}

var (
	errAbsent      = errors.New("the API server does not serve reports.openreports.io")
	errDenied      = errors.New("reports cannot be read")
	errNoNamespace = errors.New("the namespace is gone")
)

// absent tells what is missing if a report could not be created or listed.
func absent(err error) error {
	var status apierrors.APIStatus
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return errNoNamespace
	}
	return errAbsent
}

// denied recognizes an error about a missing right to read. Of writes, other things than
// rights may forbid one in a single namespace.
func denied(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	return err
}

// written counts a write.
func (c *Controller) written(err error) error {
	if !errors.Is(err, errAbsent) { // counted by stop
		c.writes.WithLabelValues(result(err)).Inc()
	}
	return err
}

// failed decides how to go on after an error.
func (c *Controller) failed(ctx context.Context, namespace string, err error) (time.Duration, error) {
	switch {
	case ctx.Err() != nil, apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return 0, err // another replica was faster
	case errors.Is(err, errAbsent), errors.Is(err, errDenied):
		c.stop(err)
		return c.pace.unavailable, nil
	}
	c.log.Warn("cannot write a report, will try again", "namespace", namespace, "error", err)
	return 0, err
}

// stop pauses all writes, and logs why.
func (c *Controller) stop(err error) {
	c.writes.WithLabelValues(unavailable).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = c.now().Add(c.pace.unavailable)
	why := "a right is missing (sallyport manifests --part rbac prints them)"
	if errors.Is(err, errAbsent) {
		why = "the CustomResourceDefinition reports.openreports.io is missing"
	}
	if c.unavailable != why {
		c.unavailable = why
		c.log.Warn("no reports are written, will try again", "reason", why, "error", err)
	}
}

// waits returns how long no report should be written.
func (c *Controller) waits() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until.Sub(c.now())
}

// available ends the state after [Controller.stop].
func (c *Controller) available() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unavailable != "" {
		c.unavailable = ""
		c.log.Info("reports are written again")
	}
}

// lead enqueues the namespaces for whose reports the leader is responsible, until the
// context ends.
func (c *Controller) lead(ctx context.Context, t *control.Term) {
	l := newLeadership(c.Watcher, c.enqueue)
	t.AtEnd(l.follow()...)
	c.leading.Store(l)
	t.AtEnd(func() { c.leading.Store(nil) })
	t.Go(func() { control.Repeat(ctx, func() time.Duration { return c.look(ctx, l) }) })
}

// look tells the leader which namespaces have a report. It returns when to look again.
func (c *Controller) look(ctx context.Context, l *leadership) (again time.Duration) {
	namespaces, err := c.reported(ctx)
	switch {
	case err == nil:
		c.available()
		l.reported(namespaces)
		return c.pace.again
	case ctx.Err() != nil:
	case errors.Is(err, errAbsent), errors.Is(err, errDenied):
		c.stop(err)
	default:
		c.log.Warn("cannot list reports, will try again", "error", err)
	}
	return c.pace.unavailable
}

// reported returns the namespaces that have a report.
func (c *Controller) reported(ctx context.Context) (namespaces []string, err error) {
	options := metav1.ListOptions{
		LabelSelector: managedByLabel + "=" + managedBy,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", ReportName).String(), Limit: 500,
	}
	for {
		page, err := c.metadata.Resource(Resource).List(ctx, options)
		if err != nil {
			return nil, denied(absent(err))
		}
		for i := range page.Items {
			namespaces = append(namespaces, page.Items[i].Namespace)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return namespaces, nil
		}
	}
}
