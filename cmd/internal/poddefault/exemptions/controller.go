// SPDX-License-Identifier: Apache-2.0

// Package exemptions writes the status of Exemptions: whether they are in force, when they
// end, and how many pods use them.
package exemptions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Name identifies the controller in configuration.
const Name = "poddefault-exemptions"

// PolicyRules are the rights that the controller needs in addition to the webhook's.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.ExemptionResource + "/status"}, Verbs: []string{"patch"}},
	}
}

// A PodCounter counts the pods that use exemptions. [drift.Board] implements it.
type PodCounter interface {
	// Exempted returns nil if the number is not known.
	Exempted(name types.NamespacedName) *int32
	// HandleExempted calls changed, which must not block, when a number has changed.
	HandleExempted(changed func()) (remove func())
}

// Options configure a controller.
type Options struct {
	// Watcher provides the objects. It must run.
	Watcher *source.Watcher
	// Leader decides which replica runs the controller.
	Leader control.Leader
	Logger *slog.Logger
	// Pods counts pods; nil if nothing does.
	Pods PodCounter
	// Counts says that exemptions count: see maxExemption of [poddefault.Settings].
	Counts bool
}

// Backoff after errors, and how long a write that only changes the number of pods waits for
// other changes.
const (
	soon   = time.Second
	later  = 2 * time.Minute
	counts = 10 * time.Second
)

// workers limits concurrent writes.
const workers = 2

// Controller writes statuses while it leads. See [New].
type Controller struct {
	Options
	frame  control.Frame
	client *rest.RESTClient
	now    func() time.Time
}

// New prepares a controller. [Controller.Run] runs it. The credentials in config need the
// rights of [PolicyRules].
func New(config *rest.Config, options Options) (*Controller, error) {
	if options.Watcher == nil || options.Leader == nil || options.Logger == nil {
		return nil, errors.New("exemptions: a watcher, a leader and a logger are needed")
	}
	client, err := store.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for Exemptions: %w", err)
	}
	return &Controller{
		Options: options, client: client, now: time.Now,
		frame: control.Frame{Leader: options.Leader, Log: options.Logger.With("controller", Name), Ready: options.Watcher.WaitReady},
	}, nil
}

// Run runs until the context ends. While another replica leads it does nothing.
func (c *Controller) Run(ctx context.Context) error { return c.frame.Run(ctx, c.lead) }

// lead writes statuses until the context ends.
func (c *Controller) lead(ctx context.Context, t *control.Term) {
	writes := control.NewController(soon, later, c.reconcile)
	t.AtEnd(c.Watcher.ExemptionStore.HandleNames(func(name types.NamespacedName) { writes.Enqueue(name, 0) }))
	if c.Pods != nil {
		t.AtEnd(c.Pods.HandleExempted(func() {
			for _, r := range c.Watcher.ExemptionStore.List() {
				writes.Enqueue(r.Identity().NamespacedName, counts)
			}
		}))
	}
	t.Go(func() { writes.Run(ctx, workers) })
}

// reconcile writes the status of an exemption if it differs from the desired one. It looks
// again when the exemption ends.
func (c *Controller) reconcile(ctx context.Context, name types.NamespacedName) (again time.Duration, err error) {
	r := c.Watcher.ExemptionStore.Get(name)
	if r == nil {
		return 0, nil
	}
	var pods *int32
	if c.Pods != nil {
		pods = c.Pods.Exempted(name)
	}
	now := c.now()
	next := desired(r, c.Counts, pods, now)
	if left := r.Until.Sub(now); next.EndTime != nil && left > 0 {
		again = left
	}
	if equality.Semantic.DeepEqual(next, r.Status) {
		return again, nil
	}
	if _, err = control.PatchStatus(ctx, c.client, sallyportv1alpha1.ExemptionResource, r.Identity(), next); err == nil {
		return again, nil
	}
	return 0, c.frame.Failed(ctx, err, "status", "exemption", name.String())
}
