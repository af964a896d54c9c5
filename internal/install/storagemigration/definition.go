// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
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

// PolicyRules are the rights that a [Migrator] needs; the name of the definition is valid. RBAC
// cannot restrict creation by name. Events about the definition, in the namespace default, come
// on top.
func PolicyRules(crd string) []rbacv1.PolicyRule {
	migrations := []string{migrationResource.Resource}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{definitionResource.Group}, Resources: []string{definitionResource.Resource}, ResourceNames: []string{crd}, Verbs: []string{"get"}},
		{APIGroups: []string{definitionResource.Group}, Resources: []string{definitionResource.Resource + "/status"}, ResourceNames: []string{crd}, Verbs: []string{"patch"}},
		{APIGroups: []string{migrationResource.Group}, Resources: migrations, Verbs: []string{"create"}},
		{APIGroups: []string{migrationResource.Group}, Resources: migrations, ResourceNames: []string{crd}, Verbs: []string{"delete", "get"}},
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

func versionsOf(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var versions []string
	for _, version := range crd.Spec.Versions {
		versions = append(versions, version.Name)
	}
	return versions
}

// own applies status.storedVersions. The migrator of Kubernetes 1.37 applies status without
// storedVersions when a migration begins, which removes what it alone has applied at the end of
// the last one. It overrides other appliers at the end of a migration.
func (m *Migrator) own(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, stored []string) error {
	patch, err := json.Marshal(map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": crd.Name, "resourceVersion": crd.ResourceVersion},
		"status":   map[string]any{"storedVersions": stored},
	})
	if err != nil {
		return err
	}
	_, err = m.definitions.Patch(ctx, m.name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, Force: new(true)}, "status")
	if err != nil {
		return fmt.Errorf("applying status.storedVersions of the definition: %w", err)
	}
	return nil
}

// converts reports whether the API server can call a webhook to convert objects. It trusts that of
// a Service only with a caBundle.
func converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return false
	}
	return c.Webhook.ClientConfig.URL != nil || len(c.Webhook.ClientConfig.CABundle) > 0
}
