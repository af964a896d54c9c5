// SPDX-License-Identifier: Apache-2.0

// Package quota reads why the API server's plugin ResourceQuota refuses a pod.
package quota

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Freed reports whether the pods of a workload end before it creates others, and a quota that refuses a new pod would
// then have room for one that requests as much.
func Freed(object *manifest.Object, refusal string) bool {
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
	parts := refusals.FindStringSubmatch(refusal)
	if parts == nil {
		return false
	}
	asked, used, limited := quantities(parts[1]), quantities(parts[2]), quantities(parts[3])
	for name, amount := range asked {
		u, known := used[name]
		l, limits := limited[name]
		if !known || !limits || u.Cmp(amount) < 0 || u.Cmp(l) > 0 {
			return false
		}
	}
	return len(asked) > 0
}

// refusals matches the message of the API server's plugin ResourceQuota.
var refusals = regexp.MustCompile(`exceeded quota: [^,]+, requested: (\S+), used: (\S+), limited: ([^;\s]+)`)

// Requested is what a pod that a quota refuses asks for.
func Requested(refusal string) string {
	parts := refusals.FindStringSubmatch(refusal)
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
