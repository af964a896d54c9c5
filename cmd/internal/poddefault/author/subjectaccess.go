// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// BySubjectAccessReview asks the API server each time. It caches
// nothing, so revoked rights stop counting at once.
func BySubjectAccessReview(client authorizationclient.SubjectAccessReviewInterface) Authorizer {
	return reviews{client}
}

type reviews struct {
	client authorizationclient.SubjectAccessReviewInterface
}

// May implements [Authorizer].
func (r reviews) May(ctx context.Context, user *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (bool, string, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := r.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra, ResourceAttributes: access,
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, "", admission.Unavailable(fmt.Errorf("asking whether the author may %s %s: %w", access.Verb, access.Resource, err), time.Second)
	}
	if review.Status.Denied {
		return false, review.Status.Reason, nil
	}
	return review.Status.Allowed, review.Status.Reason, nil
}
