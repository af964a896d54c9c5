// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// policyPart is a policy or its binding, which is ours as a whole.
type policyPart[Object metav1.Object, List runtime.Object, Wanted comparable] struct {
	applied[Object, List, Wanted]
	resource string
}

func policyObject(o Options, wait func(context.Context) error) kept {
	return &policyPart[*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyList,
		*admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration]{
		resource: "validatingadmissionpolicy",
		applied: newApplied(o, wait, policyKind, &admissionregistrationv1.ValidatingAdmissionPolicy{}, o.Client.ValidatingAdmissionPolicies(),
			func(w wanted) *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration {
				return w.policies.Policy
			},
			(*admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration).WithResourceVersion),
	}
}

func bindingObject(o Options, wait func(context.Context) error) kept {
	return &policyPart[*admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.ValidatingAdmissionPolicyBindingList,
		*admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration]{
		resource: "validatingadmissionpolicybinding",
		applied: newApplied(o, wait, bindingKind, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, o.Client.ValidatingAdmissionPolicyBindings(),
			func(w wanted) *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration {
				return w.policies.Binding
			},
			(*admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration).WithResourceVersion),
	}
}

func (o *policyPart[Object, List, Wanted]) forget() { o.passed = false }

func (o *policyPart[Object, List, Wanted]) bundles(map[string]bool, metav1.Object) [][]byte {
	return nil
}

func (o *policyPart[Object, List, Wanted]) ours(live metav1.Object) bool {
	return live.GetLabels()[ManagedByLabel] == ManagedByValue &&
		slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == o.manager })
}

func (o *policyPart[Object, List, Wanted]) observe(all wanted, live metav1.Object) error {
	wanted := o.wanted(all)
	var none Wanted
	switch {
	case wanted == none && (live == nil || !o.ours(live)):
		return nil
	case wanted == none:
		return fmt.Errorf("%s %s is not wanted any more", o.kindName, o.objectName)
	case live == nil:
		return fmt.Errorf("%s %s does not exist", o.kindName, o.objectName)
	}
	return asWanted(o.kindName+" "+o.objectName, wanted, live, o.manager)
}

func (o *policyPart[Object, List, Wanted]) pass(ctx context.Context, all wanted, live metav1.Object, full, repair bool) (outcome, error) {
	return o.reconcile(ctx, o, all, live, full, repair)
}

func (o *policyPart[Object, List, Wanted]) adopt(Wanted, Object) (restore func()) { return func() {} }

// remove deletes the object if it is an own one. It returns the resource version of what
// is left, if anything, and whether it wrote.
func (o *policyPart[Object, List, Wanted]) remove(ctx context.Context, dryRun []string) (left string, written bool, err error) {
	live, err := o.client.Get(ctx, o.objectName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading it before removal: %w", err)
	case !o.ours(live):
		return live.GetResourceVersion(), false, nil
	}
	uid := live.GetUID()
	err = o.client.Delete(ctx, o.objectName, metav1.DeleteOptions{DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, fmt.Errorf("deletion: %w", err)
	}
	return "", true, nil
}

func (o *policyPart[Object, List, Wanted]) uninstall(ctx context.Context, dryRun []string) (*Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	left, written, err := o.remove(ctx, dryRun)
	switch {
	case err != nil:
		return nil, err
	case written:
		return &Removal{Object: o.resource + ".admissionregistration.k8s.io/" + o.objectName, Action: Deleted}, nil
	case left == "":
		return nil, nil
	}
	return &Removal{
		o.resource + ".admissionregistration.k8s.io/" + o.objectName, Left,
		fmt.Sprintf("it does not carry the label %s=%s, or the field manager %s owns nothing of it", ManagedByLabel, ManagedByValue, o.manager),
	}, nil
}
