// SPDX-License-Identifier: Apache-2.0

// Package exemptions writes the status of Exemptions: whether they are in force, when they
// end, and how many pods use them.
package exemptions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/control"
	"github.com/sallyport-io/sallyport/internal/store"
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
	options.Logger = options.Logger.With("controller", Name)
	return &Controller{Options: options, client: client, now: time.Now}, nil
}

// Run runs until the context ends. While another replica leads it does nothing. It never
// returns an error, because the webhook works without it.
func (c *Controller) Run(ctx context.Context) error {
	control.WhileLeading(ctx, c.Leader, c.lead)
	return nil
}

// lead writes statuses until the context ends.
func (c *Controller) lead(ctx context.Context) {
	writes := control.NewController(soon, later, c.reconcile)
	defer c.Watcher.ExemptionStore.Handle(store.Handler[*exempt.Record]{Changed: func(changes []store.Change[*exempt.Record]) {
		for _, change := range changes {
			if change.Now != nil {
				writes.Enqueue(change.Now.Identity().NamespacedName, 0)
			}
		}
	}})()
	if c.Pods != nil {
		defer c.Pods.HandleExempted(func() {
			for _, r := range c.Watcher.ExemptionStore.List() {
				writes.Enqueue(r.Identity().NamespacedName, counts)
			}
		})()
	}
	writes.Run(ctx, workers)
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
	err = c.write(ctx, r, next)
	switch {
	case err == nil:
		return again, nil
	case apierrors.IsNotFound(err): // the watch will deliver the deletion
		return 0, nil
	case ctx.Err() == nil && !apierrors.IsConflict(err):
		c.Logger.Warn("cannot write the status of an exemption, will try again", "exemption", name.String(), "error", err)
	}
	return 0, err
}

// write writes a status unless the object has changed in between.
func (c *Controller) write(ctx context.Context, r *exempt.Record, status *sallyportv1alpha1.ExemptionStatus) error {
	is := r.Identity()
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": is.ResourceVersion},
		{"op": "replace", "path": "/metadata/uid", "value": is.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	return c.client.Patch(types.JSONPatchType).Namespace(is.Namespace).Resource(sallyportv1alpha1.ExemptionResource).
		Name(is.Name).SubResource("status").Body(patch).Do(ctx).Error()
}
