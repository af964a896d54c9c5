// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/quota"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Obstacle returns why a workload of the cluster cannot be restarted safely: its new pods would be refused, or it is not
// known whether the API server accepts them. It is empty if neither is so. A quota that the present pods use up is no
// obstacle if they end before their replacements are created.
func (s *Simulator) Obstacle(ctx context.Context, object *manifest.Object) (string, error) {
	known, err := s.defaults(ctx, object.Namespace)
	if err != nil {
		return "", err
	}
	pods, err := s.Cluster.PodsOf(ctx, object)
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		sent, err := known.owned(pod)
		if err != nil {
			return "", err
		}
		out, err := s.try(ctx, sent, known)
		if err == nil {
			err = s.askServer(ctx, out, pod.Controller)
		}
		if err != nil {
			return "", err
		}
		switch {
		case out.Unanswered != "":
			return fmt.Sprintf("of its new pods, %v: %s", errUnknown, out.Unanswered), nil
		case out.Denied == nil:
			continue
		}
		why := "its new pods would be refused by " + out.DeniedBy + ": " + out.Denied.Message
		if s.Server == nil || !quota.Freed(object, out.Denied.Message) {
			return why, nil
		}
		before := uninjected(out)
		answer, err := before.AskPod(ctx, s.Server, pod.Controller)
		if err != nil {
			return "", err
		}
		if before.Denied == nil || quota.Requested(answer.Said) != quota.Requested(out.Denied.Message) {
			return why, nil
		}
	}
	return "", nil
}
