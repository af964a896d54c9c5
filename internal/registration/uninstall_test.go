// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// testUninstall runs before other tests leave converted definitions on the API server, because
// it lists all of them.
func testUninstall(t *testing.T, config *rest.Config) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *rest.Config)
	}{
		{"own objects are deleted, and a dry run deletes nothing", testRemoveOwn},
		{"webhooks of others stay", testRemoveBesideOthers},
		{"what somebody else applied stays", testRemoveNotOurs},
		{"conversion stanzas go when asked, if they are ours", testRemoveConversions},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, config) })
	}
}

// applied writes both configurations as the field manager.
func applied(t *testing.T, config *rest.Config, name, manager string, webhooks ...admission.Webhook) {
	t.Helper()
	built, err := registration.Build(outside(name), webhooks, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1()
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if built.Mutating != nil {
		if _, err := client.MutatingWebhookConfigurations().Apply(t.Context(), built.Mutating, options); err != nil {
			t.Fatal(err)
		}
	}
	if built.Validating != nil {
		if _, err := client.ValidatingWebhookConfigurations().Apply(t.Context(), built.Validating, options); err != nil {
			t.Fatal(err)
		}
	}
}

func wantRemovals(t *testing.T, got []registration.Removal, err error, want ...registration.Removal) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testRemoveOwn(t *testing.T, config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1()
	applied(t, config, "own", registration.DefaultFieldManager,
		webhook(admission.TypeMutating, "m.own.example.com"), webhook(admission.TypeValidating, "v.own.example.com"))
	want := []registration.Removal{
		{Object: "mutatingwebhookconfiguration.admissionregistration.k8s.io/own", Action: registration.Deleted},
		{Object: "validatingwebhookconfiguration.admissionregistration.k8s.io/own", Action: registration.Deleted},
	}
	got, err := registration.RemoveConfigurations(t.Context(), client, registration.RemoveOptions{Name: "own", DryRun: true})
	wantRemovals(t, got, err, want...)
	live, err := client.MutatingWebhookConfigurations().Get(t.Context(), "own", metav1.GetOptions{})
	if err != nil || len(live.Webhooks) != 1 {
		t.Fatalf("a dry run left %+v, %v", live, err)
	}
	got, err = registration.RemoveConfigurations(t.Context(), client, registration.RemoveOptions{Name: "own"})
	wantRemovals(t, got, err, want...)
	if _, err := client.ValidatingWebhookConfigurations().Get(t.Context(), "own", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
	got, err = registration.RemoveConfigurations(t.Context(), client, registration.RemoveOptions{Name: "own"})
	wantRemovals(t, got, err)
}

func testRemoveBesideOthers(t *testing.T, config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1()
	applied(t, config, "shared", registration.DefaultFieldManager, webhook(admission.TypeMutating, "ours.example.com"))
	applied(t, config, "shared", "somebody", webhook(admission.TypeMutating, "theirs.example.com"))
	got, err := registration.RemoveConfigurations(t.Context(), client, registration.RemoveOptions{Name: "shared"})
	wantRemovals(t, got, err, registration.Removal{
		Object: "mutatingwebhookconfiguration.admissionregistration.k8s.io/shared", Action: registration.Changed,
		Why: "its own webhooks are removed, those of others remain",
	})
	live, err := client.MutatingWebhookConfigurations().Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil || len(live.Webhooks) != 1 || live.Webhooks[0].Name != "theirs.example.com" {
		t.Errorf("left is %+v, %v", live, err)
	}
}

func testRemoveNotOurs(t *testing.T, config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1()
	applied(t, config, "printed", "kubectl", webhook(admission.TypeMutating, "printed.example.com"))
	got, err := registration.RemoveConfigurations(t.Context(), client, registration.RemoveOptions{Name: "printed"})
	wantRemovals(t, got, err, registration.Removal{
		Object: "mutatingwebhookconfiguration.admissionregistration.k8s.io/printed", Action: registration.Left,
		Why: "the field manager sallyport owns no field of it; remove it with the tool that applied it",
	})

	applied(t, config, "unlabelled", registration.DefaultFieldManager, webhook(admission.TypeMutating, "unlabelled.example.com"))
	live, err := client.MutatingWebhookConfigurations().Get(t.Context(), "unlabelled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live.Labels = nil
	if _, err := client.MutatingWebhookConfigurations().Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	got, err = registration.RemoveConfigurations(t.Context(), client, registration.RemoveOptions{Name: "unlabelled"})
	wantRemovals(t, got, err, registration.Removal{
		Object: "mutatingwebhookconfiguration.admissionregistration.k8s.io/unlabelled", Action: registration.Left,
		Why: "it does not have the label app.kubernetes.io/managed-by=sallyport",
	})
}

func testRemoveConversions(t *testing.T, config *rest.Config) {
	crds := apiextensionsclient.NewForConfigOrDie(config).CustomResourceDefinitions()
	for plural, manager := range map[string]string{"cams": registration.DefaultFieldManager, "axles": "somebody"} {
		created, err := crds.Create(t.Context(), definition(plural), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stanzas, err := registration.BuildConversions(outside("conversions"), []registration.Conversion{{CRD: created.Name, Path: "/convert"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := crds.Apply(t.Context(), stanzas[created.Name], metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	const cams, axles = "cams.conversion.example.com", "axles.conversion.example.com"
	left, err := install.LeftConversions(t.Context(), crds, registration.RemoveOptions{})
	wantRemovals(t, left, err, registration.Removal{
		Object: "customresourcedefinition.apiextensions.k8s.io/" + cams, Action: registration.Left,
		Why: "its objects may be stored in versions that only its conversion webhook can convert",
	})
	want := []registration.Removal{
		{Object: "customresourcedefinition.apiextensions.k8s.io/" + axles, Action: registration.Left, Why: "the field manager sallyport does not own its conversion webhook"},
		{Object: "customresourcedefinition.apiextensions.k8s.io/" + cams, Action: registration.Changed, Why: "its conversion strategy is None"},
	}
	for _, dryRun := range []bool{true, false} {
		got, err := install.RemoveConversions(t.Context(), &changedMeanwhile{CustomResourceDefinitionInterface: crds}, []string{cams, "none.conversion.example.com", axles}, registration.RemoveOptions{DryRun: dryRun})
		wantRemovals(t, got, err, want...)
		strategy := apiextensionsv1.NoneConverter
		if dryRun {
			strategy = apiextensionsv1.WebhookConverter
		}
		live, err := crds.Get(t.Context(), cams, metav1.GetOptions{})
		if err != nil || live.Spec.Conversion.Strategy != strategy {
			t.Errorf("dry run %v: %+v, %v", dryRun, live.Spec.Conversion, err)
		}
	}
}

// changedMeanwhile is a client of definitions that another client writes just before its first patch.
type changedMeanwhile struct {
	apiextensionsclient.CustomResourceDefinitionInterface
	changed bool
}

func (c *changedMeanwhile) Patch(ctx context.Context, name string, patchType types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*apiextensionsv1.CustomResourceDefinition, error) {
	if !c.changed {
		c.changed = true
		now := fmt.Sprintf(`{"metadata":{"annotations":{"changed":%q}}}`, time.Now())
		if _, err := c.CustomResourceDefinitionInterface.Patch(ctx, name, types.MergePatchType, []byte(now), metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	return c.CustomResourceDefinitionInterface.Patch(ctx, name, patchType, data, options, subresources...)
}
