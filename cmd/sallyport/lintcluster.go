// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/lint"
)

// lintCluster looks at a cluster: at what is cluster-scoped, and at the namespaces
// where servers of webhooks are.
func (o *lintOptions) lintCluster(ctx context.Context, options lint.Options) (*lint.Report, error) {
	config, err := o.clientConfig()
	if err != nil {
		return nil, err
	}
	inventory, err := readCluster(ctx, config, lint.Kinds())
	if err != nil {
		return nil, err
	}
	options.Resources, err = lintResourcesOfCluster(config)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		err = nil // the rule says that it does not know them
	}
	if err != nil {
		return nil, err
	}
	options.Leaves = dialAll(ctx, inventory.Endpoints())
	return lint.Run(inventory, options), nil
}

// readCluster lists objects of the kinds, page by page, those in namespaces only where
// servers of webhooks are. A kind that may not be listed is
// left out, and the inventory knows that.
func readCluster(ctx context.Context, config *rest.Config, kinds []schema.GroupVersionKind) (*lint.Inventory, error) {
	reader, err := readObjects(ctx, config, kinds)
	if err != nil {
		return nil, err
	}
	return lint.ReadCluster(reader.objects, reader.missing)
}

func readObjects(ctx context.Context, config *rest.Config, kinds []schema.GroupVersionKind) (*clusterReader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	reader := &clusterReader{client: client, missing: map[schema.GroupVersionKind]string{}}
	var namespaced []schema.GroupVersionKind
	for _, gvk := range kinds {
		switch {
		case gvk.Kind == "Secret":
			// Nobody should need a right to read Secrets for this: servers show their certificates.
			reader.missing[gvk] = "not read from a cluster, on purpose"
		case slices.Contains(inNamespaces, gvk.Kind):
			namespaced = append(namespaced, gvk)
		default:
			if err := reader.list(ctx, gvk, ""); err != nil {
				return nil, err
			}
		}
	}
	first, err := lint.ReadCluster(reader.objects, reader.missing)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespacesOf(first.Endpoints()) {
		for _, gvk := range namespaced {
			if err := reader.list(ctx, gvk, namespace); err != nil {
				return nil, err
			}
		}
	}
	return reader, nil
}

// inNamespaces are kinds that are read where servers are, and nowhere else.
var inNamespaces = []string{"Service", "EndpointSlice", "Deployment", "StatefulSet", "DaemonSet", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Role", "RoleBinding"}

// namespacesOf are those of the Services among endpoints.
func namespacesOf(endpoints []string) []string {
	var out []string
	for _, endpoint := range endpoints {
		if _, namespace, ok := serviceOf(endpoint); ok && !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	return out
}

// serviceOf is the Service of an endpoint "name.namespace.svc:port".
func serviceOf(endpoint string) (name, namespace string, ok bool) {
	host, _, err := net.SplitHostPort(endpoint)
	parts := strings.Split(host, ".")
	if err != nil || len(parts) != 3 || parts[2] != "svc" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

type clusterReader struct {
	client  dynamic.Interface
	objects []lint.Object
	missing map[schema.GroupVersionKind]string
}

func (r *clusterReader) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string) error {
	resource, _ := meta.UnsafeGuessKindToResource(gvk) // which is right for these kinds
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := r.client.Resource(resource).Namespace(namespace).List(ctx, options)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			r.missing[gvk] = "no permission to list " + resource.GroupResource().String()
			return nil
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return nil // the cluster does not have that kind
		case err != nil:
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range list.Items {
			object, err := fromCluster(gvk, &list.Items[i])
			if err != nil {
				return err
			}
			r.objects = append(r.objects, object)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func fromCluster(gvk schema.GroupVersionKind, u *unstructured.Unstructured) (lint.Object, error) {
	u.SetManagedFields(nil)
	raw, err := u.MarshalJSON()
	if err != nil {
		return lint.Object{}, err
	}
	return lint.Object{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(), Raw: raw,
	}, nil
}

// dialAll asks servers for their certificates, a few at a time. Those that do not
// answer from here are left out: a Service answers only within the cluster.
func dialAll(ctx context.Context, endpoints []string) map[string][]*x509.Certificate {
	const atOnce, inAll = 16, 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, inAll)
	defer cancel()
	out := map[string][]*x509.Certificate{}
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, endpoint := range endpoints {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if chain, err := shownCertificates(ctx, endpoint, nil); err == nil {
				mu.Lock()
				out[endpoint] = chain
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return out
}

// dialTimeout is how long a server may take to show its certificate.
const dialTimeout = 3 * time.Second

// shownCertificates are those that a server shows who asks for its name. They are not
// verified: whoever compares them with a bundle does that. Over conn, if it is not
// nil, which is closed.
func shownCertificates(ctx context.Context, endpoint string, conn net.Conn) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		var dialer net.Dialer
		if conn, err = dialer.DialContext(ctx, "tcp", endpoint); err != nil {
			return nil, err
		}
	}
	defer func() { _ = conn.Close() }()                                                 // nothing was written that could get lost
	client := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true}) //nolint:gosec // see above
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates, nil
}
