// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const migrationKind = "StorageVersionMigration"

// migrationResource is served by default since Kubernetes 1.37. The Go types of k8s.io/api are not
// used: an application may be built with an older release of it.
var migrationResource = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}

// migration is a StorageVersionMigration. Spec is immutable, and Succeeded and Failed are final.
type migration struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Resource metav1.GroupResource `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (o *migration) is(condition string) bool {
	return meta.IsStatusConditionTrue(o.Status.Conditions, condition)
}

// ended reports whether the migration has ended, and what its end changes in the definition is
// written: Running becomes False last.
func (o *migration) ended() bool { return !o.is("Running") && (o.is("Succeeded") || o.is("Failed")) }

// How long a migration may take until a person is asked to look at it.
const (
	maxUnobserved = 2 * time.Minute
	maxRunning    = 15 * time.Minute
)

// stuck returns why a migration that has not ended may need a person, or nil. Kubernetes repeats
// without end what an API server answers with an internal error, as it does if a conversion fails.
func (o *migration) stuck(now time.Time) error {
	running := meta.FindStatusCondition(o.Status.Conditions, "Running")
	switch {
	case running == nil && now.Sub(o.CreationTimestamp.Time) > maxUnobserved:
		return fmt.Errorf("%s %s is not started: enable storage-version-migrator-controller in kube-controller-manager, or wait for another migration of the resource", migrationKind, o.Name)
	case running != nil && now.Sub(running.LastTransitionTime.Time) > maxRunning:
		return fmt.Errorf("%s %s is running for more than %s: its condition Running says how far it is and what stops it; %s", migrationKind, o.Name, maxRunning, howToFind)
	}
	return nil
}

const howToFind = "the application's command convert finds objects that cannot be converted"

// errNotServed says what to do instead.
var errNotServed = errors.New("the API server does not serve " + migrationResource.GroupVersion().String() +
	", as Kubernetes 1.37 does by default: rewrite the objects with kube-storage-version-migrator, or with kubectl get and kubectl replace," +
	" and then remove the other versions from status.storedVersions with kubectl patch --subresource=status")

// get returns the migration of the definition, or nil.
func (m *Migrator) get(ctx context.Context) (*migration, error) {
	object, err := m.migrations.Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", migrationKind, m.name, err)
	}
	found := &migration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", migrationKind, m.name, err)
	}
	if found.Spec.Resource != m.resource {
		return nil, fmt.Errorf("%s %s is for another resource, %s: delete it", migrationKind, m.name, &found.Spec.Resource)
	}
	return found, nil
}

// create replaces the migration, which has ended if there is one.
func (m *Migrator) create(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, ended *migration) error {
	if ended != nil {
		uid, version := ended.UID, ended.ResourceVersion
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
		if err := m.migrations.Delete(ctx, m.name, options); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %s, which has ended: %w", migrationKind, m.name, err)
		}
	}
	if err := m.own(ctx, crd, crd.Status.StoredVersions); err != nil {
		return err
	}
	_, err := m.migrations.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": migrationResource.GroupVersion().String(), "kind": migrationKind,
		"metadata": map[string]any{"name": m.name},
		"spec":     map[string]any{"resource": map[string]any{"group": m.resource.Group, "resource": m.resource.Resource}},
	}}, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err): // cluster-scoped: nothing else can be missing
		return errNotServed
	case err != nil && !apierrors.IsAlreadyExists(err): // by another replica
		return fmt.Errorf("creating %s %s: %w", migrationKind, m.name, err)
	}
	return nil
}
