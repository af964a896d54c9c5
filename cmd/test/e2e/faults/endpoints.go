// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/test/lab"
)

// The readiness probe of docs/install.md, with the API's default for the rest.
const (
	probePeriod   = 2 * time.Second
	probeTimeout  = time.Second
	probeFailures = 3
)

// addEndpoint makes a replica an endpoint of the Service, ready as it may be.
func (c *cluster) addEndpoint(ctx context.Context, r *replica) error {
	if c.balancer != nil {
		return c.balancer.add(r)
	}
	return c.persist(ctx, "adding an endpoint", func(ctx context.Context) error {
		_, err := c.clients.DiscoveryV1().EndpointSlices(serviceNamespace).Create(ctx, endpointSlice(r, true), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// removeEndpoint ends that, and returns the time at which the API had taken note.
func (c *cluster) removeEndpoint(ctx context.Context, r *replica) (time.Time, error) {
	if c.balancer != nil {
		return time.Now(), c.balancer.remove(r)
	}
	err := c.persist(ctx, "removing an endpoint", func(ctx context.Context) error {
		err := c.clients.DiscoveryV1().EndpointSlices(serviceNamespace).Delete(ctx, r.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return time.Now(), err
}

// setEndpointReady changes what the API server is told of a replica.
func (c *cluster) setEndpointReady(ctx context.Context, r *replica, ready bool) error {
	return c.persist(ctx, "updating an endpoint", func(ctx context.Context) error {
		_, err := c.clients.DiscoveryV1().EndpointSlices(serviceNamespace).Update(ctx, endpointSlice(r, ready), metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return nil // it was removed meanwhile
		}
		return err
	})
}

// persist repeats what fails, as controllers do: the API server may be what is broken.
func (c *cluster) persist(ctx context.Context, what string, do func(context.Context) error) error {
	return lab.Await(ctx, time.Minute, what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return do(ctx)
	})
}

func endpointSlice(r *replica, ready bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: serviceNamespace, Name: r.Name,
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{r.address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(portName), Port: new(int32(webhookPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
}

// watchReadiness keeps the endpoints of replicas from their /readyz, as the kubelet
// and the endpoints controller do, until the returned func is called.
func (c *cluster) watchReadiness(ctx context.Context, replicas []*replica) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, r := range replicas {
		group.Go(func() {
			ready, failures := true, 0
			for lab.Sleep(ctx, probePeriod) {
				err := r.probe(ctx, probeTimeout)
				if ctx.Err() != nil {
					return
				}
				if err == nil {
					failures = 0
				} else {
					failures++
				}
				if now := failures < probeFailures; now != ready {
					c.progress.sayf("  %s: ready is %t (%v)", r.Name, now, err)
					if err := c.setEndpointReady(ctx, r, now); err != nil {
						c.progress.sayf("  %v", err)
						continue
					}
					ready = now
				}
			}
		})
	}
	return func() { cancel(); group.Wait() }
}

// deploy starts n replicas and returns when each is ready and an endpoint, and the
// API server calls them.
func (c *cluster) deploy(ctx context.Context, n int, args ...string) ([]*replica, error) {
	var all []*replica
	for range n {
		r, err := c.startReplica(args...)
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	for _, r := range all {
		if err := r.awaitReady(ctx); err != nil {
			return all, err
		}
		if err := c.addEndpoint(ctx, r); err != nil {
			return all, err
		}
	}
	return all, c.awaitInjection(ctx)
}

// withdraw ends replicas without a word, endpoints first.
func (c *cluster) withdraw(ctx context.Context, replicas []*replica) error {
	for _, r := range replicas {
		if _, err := c.removeEndpoint(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		r.Kill()
	}
	return nil
}
