// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/plugins"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/podsecurity"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// checkPlugins evaluates the API server's own plugins for a new pod that the webhooks allow. The outcome gets
// their refusal, or what it depends on. They are left to the API server if it is asked.
func (r *reviewing) checkPlugins(ctx context.Context, q Question, out *Outcome) error {
	req := q.Request
	if r.Server != nil || out.Denied != nil || len(out.Calls) == 0 || q.Object.GVK() != workload.PodKind || req.SubResource != "" || req.Operation != admissionv1.Create {
		return nil
	}
	pod := plugins.Pod{Namespace: req.Namespace, Sent: &corev1.Pod{}, Final: &corev1.Pod{}, Origins: out.Origins()}
	after := out.After
	if r.plugins.Ranged(req.Namespace) { // webhooks get the pod with the defaults of LimitRanges
		limited := *q.Object
		var err error
		if limited.Raw, err = r.plugins.Limited(req.Namespace, q.Object.Raw); err != nil {
			return q.Object.ErrorAt("", err.Error())
		}
		asked := r.asker
		asked.Operation, asked.Namespace = req.Operation, req.Namespace
		other, err := Decide(ctx, asked.Ask(&limited, nil), r.webhooks)
		if err != nil {
			return err
		}
		if other.Denied != nil {
			out.Denied, out.DeniedBy = other.Denied, other.DeniedBy
			return nil
		}
		after = other.After
	}
	if err := q.Object.Decode(pod.Sent); err != nil {
		return err
	}
	if err := q.Object.DecodePart("", after, pod.Final); err != nil {
		return err
	}
	var answer plugins.Answer
	r.plugins.CheckNamespace(&answer, req.Namespace)
	r.plugins.CheckLimits(&answer, pod)
	r.plugins.CheckPod(&answer, pod)
	r.open.Add(&answer.Open)
	if answer.Denied == nil {
		if labels := r.plugins.Labels(req.Namespace); labels != nil {
			denied, warnings, err := podsecurity.PodOf(ctx, r.Release, req.Namespace, labels, pod.Final)
			if err != nil {
				return err
			}
			for _, warning := range warnings {
				if !slices.Contains(out.Warnings, warning) {
					out.Warnings = append(out.Warnings, warning)
				}
			}
			if r.Release.Newer() && slices.ContainsFunc([]string{podsecurityapi.EnforceLevelLabel, podsecurityapi.WarnLevelLabel}, func(key string) bool { return labels[key] != "" }) {
				answer.Unknown = append(answer.Unknown, fmt.Sprintf("PodSecurity of Kubernetes %s: 1.%d is the newest release that is known here", r.Release, release.Newest))
			}
			answer.Denied, answer.By = denied, "PodSecurity"
		}
	}
	if answer.Denied != nil {
		out.Denied, out.DeniedBy = answer.Denied, answer.By
		return nil
	}
	out.Unknown = answer.Unknown
	return nil
}

// tellOpen tells what could refuse the pods and is not in the files.
func (r *reviewing) tellOpen() {
	if r.Open != nil {
		r.Open.Add(&r.open)
	} else if text := r.open.String(); text != "" {
		manifest.Note(r.Notes, "note: %s", text)
	}
}
