// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Obstacle returns why a workload of the cluster cannot be restarted safely: its new pods would be refused, or it is not
// known whether the API server accepts them. It is empty if neither is so. A quota that the present pods use up is no
// obstacle if they end before their replacements are created.
func (t *Trial) Obstacle(ctx context.Context, object *manifest.Object) (string, error) {
	known, err := t.defaults(ctx, object.Namespace)
	if err != nil {
		return "", err
	}
	pods, err := t.Cluster.PodsOf(ctx, object)
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		sent, err := known.owned(pod)
		if err != nil {
			return "", err
		}
		out, err := t.try(ctx, sent, known)
		if err == nil {
			err = t.askServer(ctx, out, pod.Controller)
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
		if t.Server == nil || !freesQuota(object, out.Denied.Message) {
			return why, nil
		}
		before := uninjected(out)
		answer, err := before.AskPod(ctx, t.Server, pod.Controller)
		if err != nil {
			return "", err
		}
		if before.Denied == nil || requested(answer.Said) != requested(out.Denied.Message) {
			return why, nil
		}
	}
	return "", nil
}

// freesQuota reports whether the pods of a workload end before it creates others, and a quota that refuses a new pod would
// then have room for one that requests as much.
func freesQuota(object *manifest.Object, refusal string) bool {
	var body struct {
		Spec struct {
			Strategy struct {
				Type string `json:"type"`
			} `json:"strategy"`
			UpdateStrategy struct {
				RollingUpdate struct {
					MaxSurge any `json:"maxSurge"`
				} `json:"rollingUpdate"`
			} `json:"updateStrategy"`
		} `json:"spec"`
	}
	if json.Unmarshal(object.Raw, &body) != nil {
		return false
	}
	surge := fmt.Sprint(body.Spec.UpdateStrategy.RollingUpdate.MaxSurge)
	if object.Kind == "Deployment" && body.Spec.Strategy.Type != "Recreate" || object.Kind == "DaemonSet" && surge != "<nil>" && surge != "0" && surge != "0%" {
		return false
	}
	parts := quotaRefusal.FindStringSubmatch(refusal)
	if parts == nil {
		return false
	}
	requested, used, limited := quantities(parts[1]), quantities(parts[2]), quantities(parts[3])
	for name, amount := range requested {
		u, known := used[name]
		l, limits := limited[name]
		if !known || !limits || u.Cmp(amount) < 0 || u.Cmp(l) > 0 {
			return false
		}
	}
	return len(requested) > 0
}

// quotaRefusal matches the message of the API server's plugin ResourceQuota.
var quotaRefusal = regexp.MustCompile(`exceeded quota: [^,]+, requested: (\S+), used: (\S+), limited: ([^;\s]+)`)

// requested is what a pod that a quota refuses asks for.
func requested(refusal string) string {
	parts := quotaRefusal.FindStringSubmatch(refusal)
	if parts == nil {
		return ""
	}
	return parts[1]
}

// quantities reads amounts such as "limits.cpu=2,pods=1". What is not one is left out.
func quantities(text string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for each := range strings.SplitSeq(text, ",") {
		if name, amount, found := strings.Cut(each, "="); found {
			if q, err := resource.ParseQuantity(amount); err == nil {
				out[name] = q
			}
		}
	}
	return out
}
