// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Reviewer creates SubjectAccessReviews. The client in
// k8s.io/client-go/kubernetes/typed/authorization/v1 implements it.
type Reviewer interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// BySubjectAccessReview asks the API server each time. It caches
// nothing, so revoked rights stop counting at once.
func BySubjectAccessReview(reviewer Reviewer) Authorizer { return reviews{reviewer} }

type reviews struct{ reviewer Reviewer }

// May implements [Authorizer].
func (r reviews) May(ctx context.Context, user *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (bool, string, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := r.reviewer.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
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
