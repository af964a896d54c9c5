// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sallyport-io/sallyport/test/lab"
)

// An observer checks every pod that is stored, whatever its creator was told: it
// follows a watch, from one resource version on, which goes on where it broke off.
type observer struct {
	c      *cluster
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu         sync.Mutex
	version    string // of the last event
	stored     int
	uninjected []string
	lost       error // why events are missing
}

const (
	// A pod with this label ends the watch: all that was stored before was seen.
	lastKey = "last"
)

// observe begins with the pods that are stored from now on.
func (c *cluster) observe(ctx context.Context) (*observer, error) {
	list, err := c.clients.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	o := &observer{c: c, version: list.ResourceVersion}
	ctx, o.cancel = context.WithCancel(ctx)
	o.done.Go(func() {
		for ctx.Err() == nil && !o.follow(ctx) {
			lab.Sleep(ctx, 100*time.Millisecond)
		}
	})
	return o, nil
}

// follow watches until the watch breaks off. It tells whether all is done.
func (o *observer) follow(ctx context.Context) (done bool) {
	w, err := o.c.clients.CoreV1().Pods(o.c.namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: o.version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return o.failed(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return o.failed(apierrors.FromObject(event.Object))
		}
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return o.failed(fmt.Errorf("a watch of pods brought a %T", event.Object))
		}
		o.mu.Lock()
		o.version = pod.ResourceVersion
		o.mu.Unlock()
		if event.Type != watch.Added {
			continue
		}
		if pod.Labels[lastKey] != "" {
			return true
		}
		err := checkInjected(pod)
		o.mu.Lock()
		o.stored++
		if err != nil {
			o.uninjected = append(o.uninjected, err.Error())
		}
		o.mu.Unlock()
	}
	return false
}

// failed notes an error if events are lost by it.
func (o *observer) failed(err error) (done bool) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return false // try again
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = err
	return true
}

// uninjectedSoFar is how many pods were stored that lack something.
func (o *observer) uninjectedSoFar() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.uninjected)
}

// stop returns when everything that was stored until now was seen: when a last pod,
// which no webhook is for, has come by.
func (o *observer) stop(ctx context.Context) (stored int, uninjected []string, err error) {
	// Creates that were given up may still be stored, for as long as a request may take.
	last := newPod(fmt.Sprintf("last-%d", time.Now().UnixNano()), 0, 1)
	last.Labels = map[string]string{lastKey: "true"}
	last.Annotations = map[string]string{"poddefault.admission.kubeflow.org/exclude": "true"}
	err = o.c.persist(ctx, "storing the last pod", func(ctx context.Context) error {
		_, err := o.c.clients.CoreV1().Pods(o.c.namespace).Create(ctx, last, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	seen := make(chan struct{})
	go func() { o.done.Wait(); close(seen) }()
	if err == nil {
		select {
		case <-seen:
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Minute):
			err = errors.New("the watch did not bring the last pod within a minute")
		}
	}
	o.cancel()
	<-seen
	return o.stored, o.uninjected, errors.Join(err, o.lost)
}
