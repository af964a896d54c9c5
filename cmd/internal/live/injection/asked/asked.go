// SPDX-License-Identifier: Apache-2.0

// Package asked says for which pods the API server calls the PodDefault webhook, as the server has
// registered it and as it is.
package asked

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// Registration reports for which pods the server has registered the PodDefault webhook. Terms of
// other clients do not matter: the pods that they exclude should have been injected.
type Registration struct {
	cluster   *cluster.Cluster
	admission *inspect.Admission
	// Registered is false if no such webhook is registered.
	Registered bool
}

// Read reads it from a cluster.
func Read(ctx context.Context, c *cluster.Cluster) (*Registration, error) {
	admission, err := inspect.MutatingAsRegistered(ctx, c)
	if err != nil {
		return nil, err
	}
	a := &Registration{cluster: c, admission: admission}
	links, err := a.links(ctx, matcher.Request{})
	a.Registered = len(links) > 0
	return a, err
}

// Hidden reports whether the user may not read configurations.
func (a *Registration) Hidden() bool { return a.admission.Hidden() }

// links returns the webhook's entries in the chain, usually one.
func (a *Registration) links(ctx context.Context, r matcher.Request) ([]lint.Link, error) {
	links, err := a.admission.Links(ctx, r)
	return slices.DeleteFunc(links, func(link lint.Link) bool { return !strings.HasSuffix(link.Name, "/"+poddefault.Name) }), err
}

// About reports whether the webhook is meant for such a pod. If the metadata does not
// say, it reads the pod.
func (a *Registration) About(ctx context.Context, pod *metav1.ObjectMeta) (bool, error) {
	if !a.Registered {
		return true, nil
	}
	whole := metav1.PartialObjectMetadata{ObjectMeta: *pod}
	whole.ManagedFields = nil // nobody asks for them, and they are the larger part
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&whole)
	if err != nil {
		return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	links, err := a.ofPod(ctx, pod, value)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(links, func(link lint.Link) bool { return link.Answer != matcher.Out && link.Answer != matcher.In }) {
		whole, err := a.cluster.Get(ctx, workload.Kinds()[0].Path(pod.Namespace)+"/"+pod.Name)
		switch {
		case apierrors.IsNotFound(err): // it ended meanwhile
			return false, nil
		case err != nil:
			return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if err := utiljson.Unmarshal(whole.Raw, &value); err != nil {
			return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if links, err = a.ofPod(ctx, pod, value); err != nil {
			return false, err
		}
	}
	return slices.ContainsFunc(links, func(link lint.Link) bool { return link.Answer != matcher.Out }), nil
}

func (a *Registration) ofPod(ctx context.Context, pod *metav1.ObjectMeta, value map[string]any) ([]lint.Link, error) {
	return a.links(ctx, matcher.Request{
		Operation: admissionregistrationv1.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Namespace: pod.Namespace, Name: pod.Name, Object: value,
	})
}

// NotCalled returns why the API server does not call the PodDefault webhook for a new pod,
// or "" if it may. Intended is set if that is by the server's own configuration, and not by
// terms of other clients.
func NotCalled(ctx context.Context, c *cluster.Cluster, pod map[string]any, namespace, name string) (why string, intended bool, err error) {
	registered, err := Read(ctx, c)
	if err != nil {
		return "", false, err
	}
	live := &Registration{cluster: c}
	if live.admission, err = inspect.Mutating(ctx, c); err != nil {
		return "", false, err
	}
	out := func(a *Registration) (string, error) {
		links, err := a.ofPod(ctx, &metav1.ObjectMeta{Namespace: namespace, Name: name}, pod)
		if err != nil || slices.ContainsFunc(links, func(link lint.Link) bool { return link.Answer != matcher.Out }) {
			return "", err
		}
		if len(links) == 0 {
			return "no webhook " + poddefault.Name + " is registered", nil
		}
		return links[0].Why, nil
	}
	if why, err = out(live); err != nil || why == "" {
		return "", false, err
	}
	own, err := out(registered)
	return why, own != "" && registered.Registered, err
}
