// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// checkGuard checks the backstop of PodDefault injection. It reports nothing if there is
// neither a backstop nor injection.
func checkGuard(ctx context.Context, of *doctor.Installation, report *doctor.Report) {
	const check = "guard"
	if of.WebhooksErr != nil {
		report.Unread(check, "get mutatingwebhookconfigurations and validatingwebhookconfigurations", of.WebhooksErr)
		return
	}
	i := slices.IndexFunc(of.Webhooks, func(w cluster.Webhook) bool { return w.Name == poddefault.Name })
	injects := i >= 0
	opens := injects && of.Webhooks[i].FailurePolicy == admissionregistrationv1.Ignore
	name := of.Registration.Name
	api := of.Cluster.Client.AdmissionregistrationV1()
	var policy *admissionregistrationv1.ValidatingAdmissionPolicy
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		policy, err = api.ValidatingAdmissionPolicies().Get(ctx, binding.Spec.PolicyName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err) && opens:
		report.Fix(check, "if that is not meant, start a server with guard: Backstop in the settings of poddefault, or with --failure-policy Fail",
			"webhook %s fails open, and no policy stands in for it: while no server answers, pods are created without what PodDefaults say", poddefault.Name)
		return
	case apierrors.IsNotFound(err) && injects:
		report.OK(check, "webhook %s fails closed, and no policy stands in for it", poddefault.Name)
		return
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		report.Unread(check, "get validatingadmissionpolicies and their bindings", err)
		return
	}
	switch {
	case readsEarlierIndexes(policy):
		report.Fix(check, "let a server of this version lead, which replaces it; or, to let pods through at once, delete it: kubectl delete validatingadmissionpolicybindings "+name,
			"the policy %s is of an earlier version: after a start of kube-apiserver it refuses every pod of the namespaces that it is for, for 30 seconds or until the CustomResourceDefinition %s is there",
			name, EarlierIndexes.GroupResource())
	case !injects:
		report.Fix(check, "start a server, or remove what is left: sallyport uninstall",
			"the policy %s stands in for a webhook that is not registered: pods that a PodDefault selects are refused", name)
	case !opens:
		report.OK(check, "the policy %s is there, and webhook %s fails closed until it is known to be in force", name, poddefault.Name)
	default:
		report.OK(check, "webhook %s fails open, and the policy %s stands in for it", poddefault.Name, name)
		checkEarlierIndexes(ctx, of.Cluster, report, check)
	}
}

// readsEarlierIndexes reports whether the policy reads indexes that this version does not
// write.
func readsEarlierIndexes(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	kind := policy.Spec.ParamKind
	return kind != nil && kind.APIVersion == EarlierIndexes.GroupVersion().String()
}

// checkEarlierIndexes looks for leftovers of an earlier version.
func checkEarlierIndexes(ctx context.Context, c *cluster.Cluster, report *doctor.Report, check string) {
	definitions, err := crdclient.NewForConfig(c.Config)
	if err == nil {
		_, err = definitions.Get(ctx, EarlierIndexes.GroupResource().String(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		report.Unread(check, "get customresourcedefinitions", err)
	default:
		report.OK(check, "nothing reads %s any more, which an earlier version wrote: kubectl delete crd %[1]s", EarlierIndexes.GroupResource())
	}
}
