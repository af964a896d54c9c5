// SPDX-License-Identifier: Apache-2.0

package serverdoctor

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
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
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		_, err = api.ValidatingAdmissionPolicies().Get(ctx, binding.Spec.PolicyName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err) && opens:
		report.Fix(check, "if that is not meant, start a server with guard: Backstop in the settings of poddefault, or with --failure-policy Fail",
			"webhook %s fails open, and no policy stands in for it: while no server answers, pods are created without PodDefaults", poddefault.Name)
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
	case !injects:
		report.Fix(check, "start a server, or remove the rest: sallyport uninstall",
			"the policy %s stands in for a webhook that is not registered: pods that a PodDefault selects are refused", name)
	case !opens:
		report.OK(check, "the policy %s is there, and webhook %s fails closed until it is known to be in force", name, poddefault.Name)
	default:
		report.OK(check, "webhook %s fails open, and the policy %s stands in for it", poddefault.Name, name)
	}
}
