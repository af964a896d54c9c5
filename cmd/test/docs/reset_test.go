// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// newClient returns a client of what reset deletes.
func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	known := runtime.NewScheme()
	err := errors.Join(scheme.AddToScheme(known), apiextensionsv1.AddToScheme(known), kubeflowv1alpha1.AddToScheme(known), sallyportv1alpha1.AddToScheme(known))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readPodDefaults returns an error unless the API server serves both kinds.
func (w *world) readPodDefaults(ctx context.Context) error {
	return errors.Join(w.client.List(ctx, &kubeflowv1alpha1.PodDefaultList{}), w.client.List(ctx, &sallyportv1alpha1.ClusterPodDefaultList{}))
}

// Names of objects that reset deletes.
var (
	all  = regexp.MustCompile("")
	ours = regexp.MustCompile("sallyport|poddefault")
)

// reset deletes what has been installed in any way, releases of Helm among it, which are
// Secrets. kubectl would start dozens of times for that.
func (w *world) reset(t *testing.T) {
	t.Helper()
	// A webhook whose server is away refuses what comes next.
	w.delete(t, all, "", &admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{})
	w.deleteDefinitions(t)
	w.delete(t, all, "default", &rbacv1.RoleList{}, &rbacv1.RoleBindingList{})
	for _, namespace := range []string{"sallyport-system", "kubeflow"} {
		w.delete(t, all, namespace, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
			&corev1.SecretList{}, &corev1.ConfigMapList{}, &coordinationv1.LeaseList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{})
	}
	w.delete(t, ours, "", &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &flowcontrolv1.FlowSchemaList{}, &flowcontrolv1.PriorityLevelConfigurationList{})
}

// delete deletes the objects of these kinds whose name matches.
func (w *world) delete(t *testing.T, names *regexp.Regexp, namespace string, kinds ...client.ObjectList) {
	t.Helper()
	for _, list := range kinds {
		err := w.client.List(t.Context(), list, client.InNamespace(namespace))
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				object, ok := item.(client.Object)
				if !ok {
					return fmt.Errorf("%T is not an object", item)
				}
				if !names.MatchString(object.GetName()) {
					return nil
				}
				return client.IgnoreNotFound(w.client.Delete(t.Context(), object))
			})
		}
		if err != nil {
			t.Fatalf("deleting %T: %v", list, err)
		}
	}
}

// deleteDefinitions returns when the definitions and their objects are away. A definition whose
// objects nobody has read yet is read first: the API server makes its storage at the first
// read, fails to delete the objects as long as that is not ready, and tries again with pauses
// of up to 1,000 s. Each change of the definition has it try at once.
func (w *world) deleteDefinitions(t *testing.T) {
	t.Helper()
	_ = w.readPodDefaults(t.Context()) // there may be no definition
	w.delete(t, ours, "", definitions())
	began := time.Now()
	lab.Eventually(t.Context(), t, patience, "the definitions to be deleted", func(ctx context.Context) (bool, error) {
		left := definitions()
		if err := w.client.List(ctx, left); err != nil {
			return false, err
		}
		deleted := true
		for i := range left.Items {
			if !ours.MatchString(left.Items[i].Name) {
				continue
			}
			deleted = false
			if time.Since(began) > time.Second {
				change := fmt.Sprintf(`{"metadata":{"annotations":{"tried":%q}}}`, time.Now())
				_ = w.client.Patch(ctx, &left.Items[i], client.RawPatch(types.MergePatchType, []byte(change))) // it may be away by now
			}
		}
		return deleted, nil
	})
}

// definitions is a list for CustomResourceDefinitions without what makes them large.
func definitions() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinitionList"}}
}
