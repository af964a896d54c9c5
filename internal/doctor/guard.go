// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/install/deployment"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// checkGuard looks whether what stands in for PodDefault injection is whole.
func (d *doctor) checkGuard(ctx context.Context) {
	const check = "guard"
	if d.webhooksErr != nil {
		d.unread(check, "get mutatingwebhookconfigurations and validatingwebhookconfigurations", d.webhooksErr)
		return
	}
	i := slices.IndexFunc(d.webhooks, func(w cluster.Webhook) bool { return w.Name == poddefault.Name })
	injects := i >= 0
	opens := injects && d.webhooks[i].FailurePolicy == admissionregistrationv1.Ignore
	name := d.Registration.Name
	api := d.Client.AdmissionregistrationV1()
	var policy *admissionregistrationv1.ValidatingAdmissionPolicy
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		policy, err = api.ValidatingAdmissionPolicies().Get(ctx, binding.Spec.PolicyName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err) && opens:
		d.fix(check, "if that is not meant, start a server with guard: Backstop in the settings of poddefault, or with --failure-policy Fail",
			"webhook %s fails open, and no policy stands in for it: while no server answers, pods are created without what PodDefaults say", poddefault.Name)
		return
	case apierrors.IsNotFound(err) && injects:
		d.ok(check, "webhook %s fails closed, and no policy stands in for it", poddefault.Name)
		return
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		d.unread(check, "get validatingadmissionpolicies and their bindings", err)
		return
	}
	switch {
	case readsEarlierIndexes(policy):
		d.fix(check, "let a server of this version lead, which replaces it; or, to let pods through at once, delete it: kubectl delete validatingadmissionpolicybindings "+name,
			"the policy %s is of an earlier version: after a start of kube-apiserver it refuses every pod of the namespaces that it is for, for 30 seconds or until the CustomResourceDefinition %s is there",
			name, deployment.EarlierIndexes.GroupResource())
	case !injects:
		d.fix(check, "start a server, or remove what is left: sallyport uninstall",
			"the policy %s stands in for a webhook that is not registered: pods that a PodDefault selects are refused", name)
	case !opens:
		d.ok(check, "the policy %s is there, and webhook %s fails closed until it is known to be in force", name, poddefault.Name)
	default:
		d.ok(check, "webhook %s fails open, and the policy %s stands in for it", poddefault.Name, name)
		d.checkEarlierIndexes(ctx, check)
	}
}

// readsEarlierIndexes tells whether the policy reads what this version does not write.
func readsEarlierIndexes(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	kind := policy.Spec.ParamKind
	return kind != nil && kind.APIVersion == deployment.EarlierIndexes.GroupVersion().String()
}

// checkEarlierIndexes looks for what an earlier version has left.
func (d *doctor) checkEarlierIndexes(ctx context.Context, check string) {
	clients, err := apiextensionsclient.NewForConfig(d.Config)
	if err == nil {
		_, err = clients.CustomResourceDefinitions().Get(ctx, deployment.EarlierIndexes.GroupResource().String(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		d.unread(check, "get customresourcedefinitions", err)
	default:
		d.ok(check, "nothing reads %s any more, which an earlier version wrote: kubectl delete crd %[1]s", deployment.EarlierIndexes.GroupResource())
	}
}
