// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	metadataclient "k8s.io/client-go/metadata"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A secretIndex knows the Secrets of namespaces. It is safe for concurrent use.
type secretIndex struct {
	// unknown returns why Secrets are not known: a problem, which leaves objects out that
	// select Secrets, or a fault, after which the call may be retried. Nil: they are known.
	unknown func() (problem, fault error)

	mu         sync.Mutex
	namespaces map[string]*connected
}

// connected are the Secrets of a namespace and what objects became with them.
type connected struct {
	secrets plan.Secrets
	objects map[*plan.Plan]*plan.Plan
}

func newSecretIndex() *secretIndex { return &secretIndex{namespaces: map[string]*connected{}} }

func (x *secretIndex) of(namespace string) *connected {
	ns := x.namespaces[namespace]
	if ns == nil {
		ns = &connected{plan.Secrets{}, map[*plan.Plan]*plan.Plan{}}
		x.namespaces[namespace] = ns
	}
	return ns
}

// set adds or replaces a Secret.
func (x *secretIndex) set(namespace, name string, set labels.Set) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ns := x.of(namespace)
	ns.secrets[name] = set
	clear(ns.objects)
}

// delete removes a Secret.
func (x *secretIndex) delete(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.of(namespace).secrets, name)
	x.clear(namespace)
}

// deleteNamespace forgets a namespace. Secrets that are not gone yet stay.
func (x *secretIndex) deleteNamespace(namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.clear(namespace)
}

func (x *secretIndex) clear(namespace string) {
	if ns := x.of(namespace); len(ns.secrets) > 0 {
		clear(ns.objects)
	} else {
		delete(x.namespaces, namespace)
	}
}

// same reports whether these are the Secrets of the namespace.
func (x *secretIndex) same(namespace string, all plan.Secrets) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	var known plan.Secrets
	if ns := x.namespaces[namespace]; ns != nil {
		known = ns.secrets
	}
	return maps.EqualFunc(known, all, maps.Equal)
}

// forget drops what a former object became.
func (x *secretIndex) forget(c *plan.Plan) {
	former := c.Connecting()
	if len(former) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, ns := range x.namespaces {
		for _, c := range former {
			delete(ns.objects, c)
		}
	}
}

// connect is [match.Source].Connect.
func (x *secretIndex) connect(namespace string, objects []*plan.Plan) error {
	for i, c := range objects {
		if !c.Connects() || c.Problem() != nil {
			continue
		}
		if x.unknown != nil {
			problem, fault := x.unknown()
			if fault != nil {
				return admission.Unavailable(fault, time.Second)
			}
			if problem != nil {
				objects[i] = c.Without(problem)
				continue
			}
		}
		x.mu.Lock()
		ns := x.of(namespace)
		if ns.objects[c] == nil {
			if len(ns.objects) >= meta.MaxObjects { // such as those that were newer than the watch
				clear(ns.objects)
			}
			ns.objects[c] = c.WithSecrets(ns.secrets)
		}
		objects[i] = ns.objects[c]
		x.mu.Unlock()
	}
	return nil
}

// problem returns why a revision is left out that selects Secrets, or nil.
func (x *secretIndex) problem(c *plan.Plan) error {
	if c.Problem() != nil {
		return nil
	}
	if x.unknown != nil {
		if problem, fault := x.unknown(); problem != nil || fault != nil {
			return problem
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return c.WithSecrets(x.of(c.Namespace()).secrets).Problem()
}

// A secret is the cached part of a Secret.
type secret struct {
	identity store.Identity
	labels   labels.Set
}

// Identity implements [store.Object].
func (s *secret) Identity() store.Identity { return s.identity }

var errConnectionsOff = errors.New("this server does not know Secrets, which the object selects by labels: " +
	"set dataConnections in the settings of the webhook poddefault and apply the rights that 'sallyport manifests --part rbac' then prints, " +
	"or name the Secrets in envFrom")

// secretWatch is the watch of the metadata of Secrets. Nothing else waits for it if the
// server may not read them.
type secretWatch struct {
	*store.Store[*secret]
	selector string
	client   metadataclient.Getter
	denied   atomic.Pointer[error] // while the server may not read them
	// decided is closed once Secrets are read, or the server may not read them.
	decided chan struct{}
	decide  func()
}

func watchSecrets(client metadataclient.Interface, selector string, w *Watcher, loaded func()) *secretWatch {
	s := &secretWatch{selector: selector, client: client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")), decided: make(chan struct{})}
	s.decide = sync.OnceFunc(func() {
		close(s.decided)
		loaded()
	})
	s.Store = store.New(store.Kind[*metav1.PartialObjectMetadata, *secret]{
		Name: "secrets", Example: &metav1.PartialObjectMetadata{},
		Keep: func(from *metav1.PartialObjectMetadata) *secret {
			return &secret{store.Identity{
				NamespacedName: types.NamespacedName{Namespace: from.Namespace, Name: from.Name}, UID: from.UID, ResourceVersion: from.ResourceVersion,
			}, labels.Set(from.Labels)}
		},
		From: store.Limited(s.client.List, s.client.Watch, func(o *metav1.ListOptions) { o.LabelSelector = selector }, s.note),
	}, w.logger)
	s.Handle(store.Handler[*secret]{Changed: w.secretsChanged, Synced: s.decide})
	return s
}

// note records whether the server may read Secrets.
func (s *secretWatch) note(_ context.Context, err error) {
	switch {
	case err == nil:
		s.denied.Store(nil)
	case apierrors.IsForbidden(err):
		s.denied.Store(&err)
		s.decide()
	}
}

// unknown implements [secretIndex].unknown. After Secrets have been read, what is known
// counts, as it does for PodDefaults.
func (s *secretWatch) unknown() (problem, fault error) {
	if s.HasSynced() {
		return nil, nil
	}
	if denied := s.denied.Load(); denied != nil {
		return fmt.Errorf("this server may not read Secrets, which the object selects by labels: apply the rights that "+
			"'sallyport manifests --part rbac' prints with dataConnections in the settings of the webhook poddefault: %w", *denied), nil
	}
	return nil, errors.New("secrets are not read yet")
}

// list reads the Secrets of a namespace from the API server, without a resourceVersion.
func (s *secretWatch) list(ctx context.Context, namespace string) (plan.Secrets, error) {
	out := plan.Secrets{}
	options := metav1.ListOptions{LabelSelector: s.selector, Limit: pageSize}
	for {
		page, err := s.client.Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			out[page.Items[i].Name] = page.Items[i].Labels
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}
