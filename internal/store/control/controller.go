// SPDX-License-Identifier: Apache-2.0

// Package control is the frame of controllers: the work of the replica that leads, keys that
// are reconciled again until they are right, and the end of both.
package control

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Reconcile reconciles one key. It returns when to reconcile again, or zero to wait until
// the key is enqueued. Errors are retried with backoff.
type Reconcile[K comparable] func(ctx context.Context, key K) (again time.Duration, err error)

// Controller calls [Reconcile] for keys of a client-go workqueue: never concurrently for
// one key, and once for a key that was enqueued several times.
type Controller[K comparable] struct {
	queue     workqueue.TypedRateLimitingInterface[K]
	reconcile Reconcile[K]
}

// NewController returns a controller. The given delay is the backoff after the first error
// of a key; it doubles with each further error, up to longest.
func NewController[K comparable](first, longest time.Duration, reconcile Reconcile[K]) *Controller[K] {
	return &Controller[K]{workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[K](first, longest)), reconcile}
}

// Enqueue reconciles a key after a delay. It does not block.
func (c *Controller[K]) Enqueue(key K, after time.Duration) { c.queue.AddAfter(key, after) }

// Run reconciles until the context ends. It must be called only once.
func (c *Controller[K]) Run(ctx context.Context, workers int) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.ShutDown()
	group.Wait()
}

// ShutDown stops a controller, even one that never ran.
func (c *Controller[K]) ShutDown() { c.queue.ShutDown() }

func (c *Controller[K]) next(ctx context.Context) bool {
	key, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	again, err := c.reconcile(ctx, key)
	if err != nil {
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	if again > 0 {
		c.queue.AddAfter(key, again)
	}
	return true
}
