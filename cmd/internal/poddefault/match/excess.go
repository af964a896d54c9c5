// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// An Excess is a limit that a pod with its objects exceeds. It is a decision, because a
// retry would have the same result.
type Excess struct {
	Object *plan.Plan // the current one; nil if the pod alone exceeds the limit
	All    []*plan.Plan
	Text   string
	Remedy string
}

// Error implements error.
func (e *Excess) Error() string { return e.Text }

// Denial names the objects, the exceeded limit and the remedy.
func (e *Excess) Denial(pod string) *admission.Response {
	who, denied := "PodDefaults "+plan.Names(e.All), e.All
	if e.Object != nil {
		who, denied = e.Object.String(), []*plan.Plan{e.Object}
	}
	resp := admission.DeniedResponse(fmt.Sprintf("%s cannot be applied to pod %s: %s. %s", who, pod, e.Text, e.Remedy))
	if len(denied) > 0 {
		resp.AuditAnnotations = map[string]string{"denied": plan.Generations(denied)}
	}
	return resp
}
