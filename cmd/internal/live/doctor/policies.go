// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// policiesCheck is the name of the check of the cluster's policies.
const policiesCheck = "policies"

// policies are those of a cluster, with their bindings.
type policies struct {
	*doctor
	validating []admissionregistrationv1.ValidatingAdmissionPolicy
	mutating   []admissionregistrationv1.MutatingAdmissionPolicy
	params     []param // of policies that are bound
	served     bool    // MutatingAdmissionPolicies
}

// param is a binding's parameter.
type param struct {
	policy, binding string
	fail            *admissionregistrationv1.FailurePolicyType
	kind            *admissionregistrationv1.ParamKind
	ref             *admissionregistrationv1.ParamRef
}

// checkPolicies checks the policies of the cluster: whether the controller has observed them, whether their parameters are
// there, whether they can be evaluated, and whether aggregated API servers may read them.
func checkPolicies(ctx context.Context, d *doctor) {
	p := &policies{doctor: d}
	if err := p.readValidating(ctx); err != nil {
		d.Unread(policiesCheck, "list validatingadmissionpolicies and their bindings", err)
		return
	}
	if err := p.readMutating(ctx); err != nil {
		d.Unread(policiesCheck, "list mutatingadmissionpolicies and their bindings", err)
		return
	}
	before := len(d.Checks)
	p.checkObserved(time.Now())
	p.checkParams(ctx)
	p.checkFailed()
	p.checkAggregated(ctx)
	if len(d.Checks) == before {
		d.OK(policiesCheck, "%s: observed, with their parameters", cli.Count(len(p.validating)+len(p.mutating), "policy", "policies"))
	}
}

func (p *policies) readValidating(ctx context.Context) error {
	api := p.Client.AdmissionregistrationV1()
	list, err := api.ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	bindings, err := api.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	p.validating = list.Items
	for _, b := range bindings.Items {
		if i := slices.IndexFunc(list.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == b.Spec.PolicyName }); i >= 0 {
			p.params = append(p.params, param{"ValidatingAdmissionPolicy " + b.Spec.PolicyName, b.Name, list.Items[i].Spec.FailurePolicy, list.Items[i].Spec.ParamKind, b.Spec.ParamRef})
		}
	}
	return nil
}

func (p *policies) readMutating(ctx context.Context) error {
	api := p.Client.AdmissionregistrationV1()
	list, err := api.MutatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // before Kubernetes 1.36
		return nil
	}
	if err != nil {
		return err
	}
	bindings, err := api.MutatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	p.mutating, p.served = list.Items, true
	for _, b := range bindings.Items {
		if i := slices.IndexFunc(list.Items, func(p admissionregistrationv1.MutatingAdmissionPolicy) bool { return p.Name == b.Spec.PolicyName }); i >= 0 {
			p.params = append(p.params, param{"MutatingAdmissionPolicy " + b.Spec.PolicyName, b.Name, list.Items[i].Spec.FailurePolicy, list.Items[i].Spec.ParamKind, b.Spec.ParamRef})
		}
	}
	return nil
}

// observedWithin is how long the controller may take.
const observedWithin = time.Minute

// checkObserved reports policies that kube-controller-manager has not observed, and what its type checking found. Only
// ValidatingAdmissionPolicies have a status.
func (p *policies) checkObserved(now time.Time) {
	var waiting []string
	for _, v := range p.validating {
		changed := v.CreationTimestamp.Time
		for _, f := range v.ManagedFields {
			if f.Time != nil && f.Subresource == "" && f.Time.After(changed) {
				changed = f.Time.Time
			}
		}
		if v.Status.ObservedGeneration < v.Generation {
			if now.Sub(changed) > observedWithin {
				waiting = append(waiting, v.Name)
			}
			continue
		}
		if v.Status.TypeChecking != nil {
			for _, w := range v.Status.TypeChecking.ExpressionWarnings {
				p.Note(policiesCheck, "ValidatingAdmissionPolicy %s: %s: %s", v.Name, w.FieldRef, w.Warning)
			}
		}
	}
	if len(waiting) > 0 {
		p.Note(policiesCheck, "not observed since their last change: ValidatingAdmissionPolicy %s. They apply, but nothing has checked their types: see whether kube-controller-manager runs its validatingadmissionpolicy-status-controller",
			strings.Join(shorten(waiting), ", "))
	}
}

// shorten returns the first names of many, and how many more there are.
func shorten(names []string) []string {
	const shown = 5
	if len(names) <= shown {
		return names
	}
	return append(slices.Clone(names[:shown]), fmt.Sprintf("%d more", len(names)-shown))
}

// checkParams reports bindings whose parameters the API server cannot find.
func (p *policies) checkParams(ctx context.Context) {
	for _, b := range p.params {
		if b.kind == nil {
			continue
		}
		gvk := schema.FromAPIVersionAndKind(b.kind.APIVersion, b.kind.Kind)
		list, err := p.Client.Discovery().ServerResourcesForGroupVersion(gvk.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			p.Unknown(policiesCheck, "see whether the API server is well, and try again", "%s: whether there are parameters of %s: %v", b.policy, gvk, err)
			continue
		}
		i := -1
		if err == nil {
			i = slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") })
		}
		fails := b.fail == nil || *b.fail == admissionregistrationv1.Fail
		if i < 0 {
			p.add(fails, "install the definition of its paramKind", "%s: the API server does not serve its paramKind, %s %s: no parameter can be synced, and each request that it matches fails", b.policy, b.kind.APIVersion, b.kind.Kind)
			continue
		}
		resource, ref := list.APIResources[i], b.ref
		if ref == nil || ref.Name == "" || resource.Namespaced && ref.Namespace == "" { // others depend on the request
			continue
		}
		path := "/apis/" + gvk.GroupVersion().String()
		if gvk.Group == "" {
			path = "/api/" + gvk.Version
		}
		if resource.Namespaced {
			path += "/namespaces/" + ref.Namespace
		}
		_, err = p.Get(ctx, path+"/"+resource.Name+"/"+ref.Name)
		switch {
		case apierrors.IsForbidden(err):
			p.Skip(policiesCheck, "no permission to get the parameter of the binding %s: %s %s", b.binding, resource.Name, ref.Name)
		case err != nil && !apierrors.IsNotFound(err):
			p.Unread(policiesCheck, "get "+resource.Name, err)
		case err != nil && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction:
			p.add(fails, "create it, or set parameterNotFoundAction: Allow", "%s: the parameter of its binding %s is missing, %s %s, so that each request that it matches fails", b.policy, b.binding, b.kind.Kind, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
		case err != nil:
			p.Note(policiesCheck, "%s: the parameter of its binding %s is missing, %s %s, so that it does nothing", b.policy, b.binding, b.kind.Kind, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
		}
	}
}

// add records something broken that fails requests, or is ignored.
func (p *policies) add(fails bool, remedy, format string, args ...any) {
	if fails {
		p.Fix(policiesCheck, remedy, format, args...)
		return
	}
	p.Note(policiesCheck, format+", which its failurePolicy ignores", args...)
}

// checkFailed reports policies whose evaluations have failed since the API server started.
func (p *policies) checkFailed() {
	if p.calls == nil {
		return
	}
	usages, err := callmetrics.Usages(nil, p.calls)
	if err != nil {
		return
	}
	for _, u := range usages {
		if u.Failed > 0 && (u.Kind == callmetrics.MutatingPolicy || u.Kind == callmetrics.ValidatingPolicy) {
			p.Note(policiesCheck, "%s %s: %.0f of %.0f evaluations have failed since the API server started: an expression, or a parameter that was missing or not synced", u.Kind, u.Name, u.Failed, u.Calls)
		}
	}
}

// apiServices are what is read of APIServices.
type apiService struct {
	Metadata struct{ Name string }
	Spec     struct {
		Service *struct{ Namespace, Name string }
	}
	Status struct{ Conditions []metav1.Condition }
}

// read are the resources that an API server reads that evaluates policies. One that is built with a newer library than its
// roles waits for the last two without an end.
var read = []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}

// checkAggregated reports aggregated API servers that may read some kinds of policies, and not all.
func (p *policies) checkAggregated(ctx context.Context) {
	objects, err := p.List(ctx, "/apis/apiregistration.k8s.io/v1/apiservices")
	if err != nil {
		if !apierrors.IsNotFound(err) {
			p.Unread(policiesCheck, "list apiservices", err)
		}
		return
	}
	asked := map[string]bool{}
	for _, o := range objects {
		var service apiService
		if json.Unmarshal(o.Raw, &service) != nil || service.Spec.Service == nil {
			continue
		}
		at := service.Spec.Service
		if asked[at.Namespace+"/"+at.Name] {
			continue
		}
		asked[at.Namespace+"/"+at.Name] = true
		for _, account := range p.accountsBehind(ctx, at.Namespace, at.Name) {
			may, err := p.mayList(ctx, at.Namespace, account)
			if err != nil {
				p.Unread(policiesCheck, "create subjectaccessreviews", err)
				return
			}
			var lacks []string
			for i, resource := range read {
				if !may[i] && (i < 2 || p.served) {
					lacks = append(lacks, resource)
				}
			}
			if len(lacks) == 0 || !slices.Contains(may, true) { // one that reads none does not evaluate policies
				continue
			}
			available := slices.ContainsFunc(service.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" && c.Status == metav1.ConditionTrue })
			text := fmt.Sprintf("the aggregated API server of %s reads policies, and its service account %s/%s cannot list %s: built with libraries that know them, it does not become ready", service.Metadata.Name, at.Namespace, account, strings.Join(lacks, ", "))
			if available {
				p.Note(policiesCheck, "%s after its next upgrade", text)
			} else {
				p.Fix(policiesCheck, "bind a ClusterRole to it that may list and watch them in the group admissionregistration.k8s.io", "%s", text)
			}
		}
	}
}

// accountsBehind returns the service accounts of the pods behind a Service; none if that cannot be found out.
func (p *policies) accountsBehind(ctx context.Context, namespace, name string) []string {
	service, err := p.Client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(service.Spec.Selector) == 0 {
		return nil
	}
	pods, err := p.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String(), Limit: 100})
	if err != nil {
		return nil
	}
	var out []string
	for _, pod := range pods.Items {
		if account := pod.Spec.ServiceAccountName; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && account != "" && !slices.Contains(out, account) {
			out = append(out, account)
		}
	}
	return out
}

// mayList reports which kinds of policies a service account may list.
func (p *policies) mayList(ctx context.Context, namespace, account string) ([]bool, error) {
	out := make([]bool, len(read))
	for i, resource := range read {
		review, err := p.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: admissionregistrationv1.GroupName, Resource: resource},
		}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		out[i] = review.Status.Allowed
	}
	return out, nil
}
