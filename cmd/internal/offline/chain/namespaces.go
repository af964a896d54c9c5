// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/defaults"
)

// readNamespaces reads the namespaces. That of the request always exists.
func (e *evaluation) readNamespaces() error {
	e.namespaces = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, o := range e.Objects {
		if o.GVK() != corev1.SchemeGroupVersion.WithKind("Namespace") || o.Name == "" {
			continue
		}
		namespace := &corev1.Namespace{}
		if err := o.Decode(namespace); err != nil {
			return err
		}
		defaults.StoredNamespace(namespace)
		if err := e.namespaces.Add(namespace); err != nil {
			return err
		}
	}
	name := e.Request.Namespace
	if _, exists, _ := e.namespaces.GetByKey(name); exists || name == "" || e.NamespaceMissing {
		return nil
	}
	switch {
	case e.Request.Kind.Kind == "Namespace":
	case slices.Contains(everywhere, name):
		e.guessed = true
		e.result.Notes = append(e.result.Notes, "the namespace "+name+" is not among the objects: it is taken as one without labels of its own")
	default:
		e.guessed = true
		e.result.Unknown = append(e.result.Unknown, "the namespace "+name+" is not among the objects: whether it exists, and its labels")
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	defaults.StoredNamespace(namespace)
	return e.namespaces.Add(namespace)
}

// everywhere are the namespaces that each cluster has.
var everywhere = []string{corev1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem}

// lifecycle is kube-apiserver's plugin NamespaceLifecycle, which comes first.
func (e *evaluation) lifecycle(a *attributes) error {
	if e.Request.Operation != admissionv1.Create || e.Request.Namespace == "" || e.Request.Kind.Kind == "Namespace" {
		return nil
	}
	if e.NamespaceMissing {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), e.Request.Namespace)
	}
	object, exists, err := e.namespaces.GetByKey(e.Request.Namespace)
	if namespace, ok := object.(*corev1.Namespace); err == nil && exists && ok && namespace.Status.Phase == corev1.NamespaceTerminating {
		return apiserveradmission.NewForbidden(a, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", e.Request.Namespace))
	}
	return err
}
