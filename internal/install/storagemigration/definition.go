// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
)

var definitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Validate checks the name of a definition, which is that of its resource and its group.
func Validate(crd string) error {
	plural, group, ok := strings.Cut(crd, ".")
	problems := append(validation.IsDNS1035Label(plural), validation.IsDNS1123Subdomain(group)...)
	if !ok || len(problems) > 0 {
		return fmt.Errorf("the CustomResourceDefinition %q: want PLURAL.GROUP, for example crontabs.stable.example.com", crd)
	}
	return nil
}

// PolicyRules are the rights that a [Migrator] needs; the name of the definition is valid. Events
// about it, in the namespace default, come on top.
func PolicyRules(crd string) []rbacv1.PolicyRule {
	plural, group, _ := strings.Cut(crd, ".")
	definitions := []string{definitionResource.Group}
	return []rbacv1.PolicyRule{
		{APIGroups: definitions, Resources: []string{definitionResource.Resource}, ResourceNames: []string{crd}, Verbs: []string{"get"}},
		{APIGroups: definitions, Resources: []string{definitionResource.Resource + "/status"}, ResourceNames: []string{crd}, Verbs: []string{"patch"}},
		{APIGroups: []string{group}, Resources: []string{plural}, Verbs: []string{"list", "patch"}},
	}
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// servedVersions are those in which there are requests, the storage version first.
func servedVersions(crd *apiextensionsv1.CustomResourceDefinition, storage string) []string {
	var versions []string
	for _, version := range crd.Spec.Versions {
		switch {
		case !version.Served:
		case version.Name == storage:
			versions = slices.Insert(versions, 0, storage)
		default:
			versions = append(versions, version.Name)
		}
	}
	return versions
}

// migrated tells whether no object is stored in another version.
func migrated(crd *apiextensionsv1.CustomResourceDefinition, storage string) bool {
	return slices.Equal(crd.Status.StoredVersions, []string{storage})
}

// prune takes the other versions out of status.storedVersions, if the definition is what it was
// before all objects were rewritten. Each change of its spec, and so each change of the storage
// version, gives it another generation (also one of the caBundle, which costs one pass more that
// writes nothing), and the patch is for the resourceVersion that was compared.
func (m *Migrator) prune(ctx context.Context, before *apiextensionsv1.CustomResourceDefinition, storage string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := m.definitions.Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, version := range now.Status.StoredVersions {
			if !slices.Contains(before.Status.StoredVersions, version) {
				return errChanged
			}
		}
		switch {
		case now.UID != before.UID || now.Generation != before.Generation:
			return errChanged
		case migrated(now, storage): // by somebody else
			return nil
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": now.UID, "resourceVersion": now.ResourceVersion},
			"status":   map[string]any{"storedVersions": []string{storage}},
		})
		if err != nil {
			return err
		}
		_, err = m.definitions.Patch(ctx, m.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
		return err
	})
	switch {
	case errors.Is(err, errChanged) || apierrors.IsConflict(err):
		return errChanged
	case err != nil:
		return fmt.Errorf("status.storedVersions of the definition: %w", err)
	}
	return nil
}
