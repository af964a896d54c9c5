// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// ReadCluster sets what a request depends on from a cluster: Objects, Unknown and Authorizer, and the
// user of a request that has none: whoever reads. What the user may not read is unknown.
func (r *Run) ReadCluster(ctx context.Context, c *cluster.Cluster) error {
	read := &reading{Run: r, cluster: c}
	impersonate := r.Request.UserInfo.Username != ""
	if !impersonate {
		answer, err := c.Client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking the API server who you are: %w; or set the user with --as", err)
		}
		r.Request.UserInfo = answer.Status.UserInfo
	}
	gv := admissionregistrationv1.SchemeGroupVersion
	for _, resource := range []string{
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
	} {
		read.list(ctx, gv.WithResource(resource), "")
	}
	if namespace := r.Request.Namespace; namespace != "" {
		r.NamespaceMissing = read.get(ctx, "the namespace "+namespace, "/api/v1/namespaces/"+namespace)
		if r.Request.Kind.Kind == "Pod" && r.Request.Operation == admissionv1.Create {
			read.list(ctx, corev1.SchemeGroupVersion.WithResource("limitranges"), namespace)
		}
		read.list(ctx, kubeflowv1alpha1.GroupVersion.WithResource(kubeflowv1alpha1.PodDefaultResource), namespace)
	}
	read.list(ctx, sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.ClusterPodDefaultResource), "")
	read.revisions(ctx)
	if asked := r.Request.Resource; !scheme.Scheme.Recognizes(schema.GroupVersionKind(r.Request.Kind)) {
		read.get(ctx, "the CustomResourceDefinition of "+asked.Resource, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+asked.Resource+"."+asked.Group)
	}
	kinds, err := paramKinds(r.Objects)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if resource := r.Resources.OfKind(kind); resource != nil {
			read.list(ctx, resource.GroupVersionResource, "")
		}
	}
	r.Authorizer = &reviewer{c.Client}
	var as *authenticationv1.UserInfo
	if impersonate {
		as = &r.Request.UserInfo
	}
	server, err := dryrun.New(c.Config, as)
	if err != nil {
		return err
	}
	server.FieldManager = r.FieldManager
	r.readRelease(c)
	if r.DryRun = server.Ask; r.otherRelease {
		r.DryRun = nil
		r.Unknown = append(r.Unknown, "the API server's own checks: the cluster's is of another release than --kubernetes-version "+r.Release.String())
	}
	return errors.Join(read.errs...)
}

// paramKinds returns the kinds of parameters that policies name.
func paramKinds(all []*manifest.Object) ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	for _, o := range all {
		var policy struct {
			Spec struct {
				ParamKind *admissionregistrationv1.ParamKind `json:"paramKind"`
			} `json:"spec"`
		}
		if o.GVK().Group != admissionregistrationv1.GroupName {
			continue
		}
		if err := o.Decode(&policy); err != nil {
			return nil, err
		}
		if p := policy.Spec.ParamKind; p != nil {
			if gvk := schema.FromAPIVersionAndKind(p.APIVersion, p.Kind); !slices.Contains(kinds, gvk) {
				kinds = append(kinds, gvk)
			}
		}
	}
	return kinds, nil
}

// reading reads a cluster for a run.
type reading struct {
	*Run
	cluster *cluster.Cluster
	errs    []error
}

// list adds the objects of a resource, which the cluster may lack. Clusters of 1.34 and 1.35 may have mutating policies of
// v1beta1.
func (r *reading) list(ctx context.Context, resource schema.GroupVersionResource, namespace string) {
	path := workload.Kind{GroupVersion: resource.GroupVersion().String(), Resource: resource.Resource}.Path(namespace)
	objects, err := r.cluster.List(ctx, path)
	if apierrors.IsNotFound(err) && strings.HasPrefix(resource.Resource, "mutatingadmissionpolic") && resource.Version == admissionregistrationv1.SchemeGroupVersion.Version {
		r.list(ctx, resource.GroupResource().WithVersion(admissionregistrationv1beta1.SchemeGroupVersion.Version), namespace)
		return
	}
	r.take(resource.GroupResource().String(), objects, err)
}

// revisions lists the revisions of PodDefaults and ClusterPodDefaults, if one of them has
// spec.rollout: they have the state of its rollout.
func (r *reading) revisions(ctx context.Context) {
	listed := map[string]bool{}
	for _, o := range r.Objects {
		if kind := o.GVK().Kind; kind != kubeflowv1alpha1.PodDefaultKind && kind != sallyportv1alpha1.ClusterPodDefaultKind || listed[o.Namespace] {
			continue
		}
		var body struct {
			Spec struct {
				Rollout *struct{} `json:"rollout"`
			} `json:"spec"`
		}
		if json.Unmarshal(o.Raw, &body) == nil && body.Spec.Rollout != nil {
			listed[o.Namespace] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(listed)) {
		r.list(ctx, sallyportv1alpha1.GroupVersion.WithResource(revision.Resource(namespace)), namespace)
	}
}

// get adds an object, and reports whether the cluster lacks it.
func (r *reading) get(ctx context.Context, what, path string) (missing bool) {
	object, err := r.cluster.Get(ctx, path)
	r.take(what, []*manifest.Object{object}, err)
	return apierrors.IsNotFound(err)
}

func (r *reading) take(what string, objects []*manifest.Object, err error) {
	switch {
	case apierrors.IsForbidden(err):
		r.Unknown = append(r.Unknown, what+": you may not read them")
	case apierrors.IsNotFound(err):
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("reading %s: %w", what, err))
	default:
		r.Objects = append(r.Objects, objects...)
	}
}

// reviewer asks the API server for rights. It implements [authorizer.UnconditionalAuthorizer].
type reviewer struct{ client kubernetes.Interface }

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (r *reviewer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups()}}
	if a.IsResourceRequest() {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		}
	} else {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
	}
	answer, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case answer.Status.Denied:
		return authorizer.DecisionDeny, answer.Status.Reason, nil
	case answer.Status.Allowed:
		return authorizer.DecisionAllow, answer.Status.Reason, nil
	}
	return authorizer.DecisionNoOpinion, answer.Status.Reason, nil
}
