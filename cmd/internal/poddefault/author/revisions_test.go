// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// roles are what a user may do: "verb resource/subresource in NAMESPACE".
type roles []string

func (r roles) May(_ context.Context, _ *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (bool, string, error) {
	right := access.Verb + " " + strings.TrimSuffix(access.Resource+"/"+access.Subresource, "/") + " in " + access.Namespace
	return slices.Contains(r, right), "", nil
}

func TestWhoMayWriteRevisions(t *testing.T) {
	const (
		first  = "metadata: {name: a, labels: {sallyport.io/stable: 'true'}, ownerReferences: [{uid: u}]}\nrevision: 1\nspec: {env: []}\nrollout: {revision: b, step: 1}"
		moved  = "metadata: {name: a, labels: {sallyport.io/stable: 'true'}, ownerReferences: [{uid: u}]}\nrevision: 1\nspec: {env: []}\nrollout: {revision: b, step: 2}"
		loose  = "metadata: {name: a, ownerReferences: [{uid: u}]}\nrevision: 1\nspec: {env: []}\nrollout: {revision: b, step: 1}"
		noted  = "metadata: {name: a, labels: {sallyport.io/stable: 'true'}, ownerReferences: [{uid: u}], annotations: {a: b}}\nrevision: 1\nspec: {env: []}\nrollout: {revision: b, step: 1}"
		server = "patch poddefaults/status in "
	)
	for name, tc := range map[string]struct {
		operation   admissionv1.Operation
		resource    schema.GroupVersionResource
		object, old string
		mode        Mode
		may         roles
		allowed     bool
		warned      int
	}{
		"a server":                         {admissionv1.Create, podDefaultRevisions, first, "", Enforce, roles{server}, true, 0},
		"a server, of a ClusterPodDefault": {admissionv1.Create, clusterPodDefaultRevisions, first, "", Enforce, roles{server}, true, 0},
		"an author":                        {admissionv1.Create, podDefaultRevisions, first, "", Enforce, roles{"create pods in team-a"}, true, 0},
		"a user without either":            {admissionv1.Create, podDefaultRevisions, first, "", Enforce, nil, false, 0},
		"a user with a server's right in a namespace": {admissionv1.Create, podDefaultRevisions, first, "", Enforce, roles{"patch poddefaults/status in team-a"}, false, 0},
		"an author of a namespace, of the cluster":    {admissionv1.Create, clusterPodDefaultRevisions, first, "", Enforce, roles{"create pods in team-a"}, false, 0},
		"an author of the cluster":                    {admissionv1.Create, clusterPodDefaultRevisions, first, "", Enforce, roles{"create pods in "}, true, 0},
		"a step":                                      {admissionv1.Update, podDefaultRevisions, moved, first, Enforce, nil, false, 0},
		"the label of the stable one":                 {admissionv1.Update, podDefaultRevisions, loose, first, Enforce, nil, false, 0},
		"an annotation":                               {admissionv1.Update, podDefaultRevisions, noted, first, Enforce, nil, true, 0},
		"with warn it is a warning":                   {admissionv1.Update, podDefaultRevisions, moved, first, Warn, nil, true, 1},
		"with off nobody is asked":                    {admissionv1.Update, podDefaultRevisions, moved, first, Off, nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, tc.operation, tc.resource, tc.object, tc.old)
			if req.Kind.Kind = "PodDefaultRevision"; tc.resource == clusterPodDefaultRevisions {
				req.Namespace = ""
			}
			resp := handle(t, tc.may, tc.mode, req)
			if resp.Allowed != tc.allowed || len(resp.Warnings) != tc.warned {
				t.Errorf("allowed %v, warned %q, %+v", resp.Allowed, resp.Warnings, resp.Status)
			}
			if !tc.allowed && !strings.Contains(resp.Status.Message, "may not create pods") {
				t.Errorf("message %q", resp.Status.Message)
			}
		})
	}
}
