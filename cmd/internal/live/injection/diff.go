// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// Diff prints what PodDefaults would change in the pods of objects, and why others would not. It reports whether a pod would
// be denied.
func (s *Simulator) Diff(ctx context.Context, objects []*manifest.Object, printer *review.Printer) (denied bool, err error) {
	var unknown []error
	for _, object := range objects {
		known, err := s.defaults(ctx, cmp.Or(object.Namespace, s.Cluster.Namespace))
		if err != nil {
			return false, err
		}
		pods, err := s.Cluster.PodsOf(ctx, object)
		if err != nil {
			return false, err
		}
		for _, pod := range pods {
			out, err := s.diff(ctx, pod, known)
			if err != nil {
				return false, err
			}
			if err := printer.Print(out); err != nil {
				return false, err
			}
			if denied = denied || out.Denied != nil; out.Unanswered != "" {
				unknown = append(unknown, fmt.Errorf("%s: %w: %s", out.Object.Title(), errUnknown, out.Unanswered))
			}
		}
	}
	if denied {
		return true, nil
	}
	return false, errors.Join(unknown...)
}

func (s *Simulator) diff(ctx context.Context, pod *workload.Pod, known *Defaults) (*review.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.Checker.CheckPod(ctx, pod); err != nil {
		return nil, err
	}
	sent, err := known.owned(pod)
	if err != nil {
		return nil, err
	}
	out, err := s.try(ctx, sent, known)
	if err != nil {
		return nil, err
	}
	out.Remarks = known.remarks(out)
	return out, s.askServer(ctx, out, pod.Controller)
}

// remarks says of each object why it would not be applied to a pod that is admitted. Of one that does not select the pod it
// does so only if it was applied to it, or if no other object is worth a remark or applied. Of one that would be applied to
// a pod that exists it says why it was not.
func (k *Defaults) remarks(out *review.Outcome) []string {
	var remarks, unselected []string
	applied := false
	for _, d := range k.All {
		r := out.PodDefaults.Of(d.Plan)
		exists, now := out.Object.UID != "", r.Why == match.Applied
		was, detail := false, ""
		if exists {
			was, detail = d.wasApplied(out.Object, r)
		}
		applied = applied || now
		switch {
		case now && exists && !was:
			remarks = append(remarks, fmt.Sprintf("%s would be applied now: %s", d.Plan, detail))
		case now:
		case was:
			remarks = append(remarks, fmt.Sprintf("%s was applied when the pod was created, and would not be now: %s", d.Plan, d.WhyNot(r, false)))
		case r.Why == match.NotSelected:
			unselected = append(unselected, fmt.Sprintf("%s would not be applied: %s", d.Plan, d.WhyNot(r, false)))
		case r.Why != match.NotCalled: // the printer says so
			remarks = append(remarks, fmt.Sprintf("%s would not be applied: %s", d.Plan, d.WhyNot(r, false)))
		}
	}
	if len(remarks) == 0 && !applied {
		remarks = unselected
	}
	if more := len(remarks) - maxReasons; more > 0 {
		remarks = append(remarks[:maxReasons:maxReasons], fmt.Sprintf("and %d more: see 'sallyport explain'", more))
	}
	return remarks
}
