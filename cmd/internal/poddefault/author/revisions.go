// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A revision decides what pods get while its owner is rolled out, and what a rollback restores. So
// its writer needs the right of the owner's author, or is a server: servers write revisions, and may
// patch the statuses of PodDefaults in all namespaces, which no right in a namespace includes.

var (
	podDefaultRevisions        = sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.PodDefaultRevisionResource)
	clusterPodDefaultRevisions = sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.ClusterPodDefaultRevisionResource)
)

// serversRight is the right that tells servers from authors.
var serversRight = authorizationv1.ResourceAttributes{
	Verb: "patch", Group: kubeflowv1alpha1.GroupName, Version: kubeflowv1alpha1.Version, Resource: kubeflowv1alpha1.PodDefaultResource, Subresource: "status",
}

// revision answers a write of a revision.
func (h *handler) revision(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if h.mode == Off || req.Operation == admissionv1.Update && sameRevision(req.Object.Raw, req.OldObject.Raw) {
		return admission.Allowed(), nil
	}
	right := serversRight
	allowed, _, err := h.authorizer.May(ctx, &req.UserInfo, &right)
	if err != nil {
		return nil, err
	}
	if allowed {
		return admission.Allowed(), nil
	}
	return h.enforce(ctx, req, "it decides what is added to pods")
}

// sameRevision reports whether two revisions differ in nothing that decides about pods.
func sameRevision(object, old []byte) bool {
	for _, field := range [][]string{{"metadata", "labels"}, {"metadata", "ownerReferences"}, {"revision"}, {"spec"}, {"rollout"}} {
		now, there := rawjson.Lookup(object, field...)
		before, was := rawjson.Lookup(old, field...)
		if there != was || !bytes.Equal(now, before) {
			return false
		}
	}
	return true
}

// mayCreatePods returns why the user may not create the pods that an object is about, or "".
func (h *handler) mayCreatePods(ctx context.Context, req *admissionv1.AdmissionRequest, because string) (string, error) {
	pods := &authorizationv1.ResourceAttributes{Namespace: req.Namespace, Verb: "create", Version: "v1", Resource: "pods"}
	allowed, reason, err := h.authorizer.May(ctx, &req.UserInfo, pods)
	if err != nil || allowed {
		return "", err
	}
	where, remedy := "in the namespace "+req.Namespace, " -n "+req.Namespace
	if req.Namespace == "" {
		where, remedy = "in every namespace", " --all-namespaces"
	}
	text := fmt.Sprintf("%s: %s, and %q may not create pods %s; ask for that right (kubectl auth can-i create pods%s), "+
		"or ask a user who has it to write the object", title(req), because, req.UserInfo.Username, where, remedy)
	if reason != "" {
		text += ": " + reason
	}
	return text, nil
}
