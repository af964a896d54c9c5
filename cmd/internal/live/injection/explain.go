// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/placement"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollout"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// An Explanation is the output of explain.
type Explanation struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Basis is what was tried instead of the object itself.
	Basis       string        `json:"basis,omitempty"`
	Note        string        `json:"note,omitempty"`
	Matching    []explained   `json:"matching"`
	NotMatching []notMatching `json:"notMatching"`
	// Carried lists decisions made when the pod was admitted, by objects that no longer
	// apply.
	Carried  []explained          `json:"carried,omitempty"`
	Datasets *placement.Placement `json:"datasets,omitempty"`
	// Denied is the message of the denial. Unknown says why it is not known whether the API server accepts the pod.
	Denied   string   `json:"denied,omitempty"`
	Unknown  string   `json:"unknown,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	// Sent is the pod before admission, as far as known.
	Sent *manifest.Object `json:"-"`

	stored  jsontext.Value
	origins []admission.Origin // in stored
}

// explained is an object that applies to the pod.
type explained struct {
	Name string `json:"name"`
	// Applied reports whether it was, or would be, applied.
	Applied bool     `json:"applied"`
	Detail  string   `json:"detail,omitempty"`
	Adds    []string `json:"adds,omitempty"`
	// Exempt is what exempts new pods like this from it.
	Exempt *exempt.Exemption `json:"exempt,omitempty"`
}

type notMatching struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Explain explains which PodDefaults apply to the pods of objects and which nodes their
// datasets want, and reports whether one would be denied. Settings are those of the
// dataset webhook.
func (s *Simulator) Explain(ctx context.Context, objects []*manifest.Object, settings dataset.Settings, tell func(*Explanation) error) (denied bool, err error) {
	x := explainer{Simulator: s}
	if x.datasets, err = placement.New(s.Cluster, settings, s.Notes); err != nil {
		return false, err
	}
	var pods []*workload.Pod
	for _, object := range objects {
		made, err := s.Cluster.PodsOf(ctx, object)
		if err != nil {
			return false, err
		}
		pods = append(pods, made...)
	}
	for _, pod := range pods {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := s.Checker.CheckPod(ctx, pod); err != nil {
			return false, err
		}
		e, err := x.explain(ctx, pod)
		if err != nil {
			return false, err
		}
		denied = denied || e.Denied != ""
		if err := tell(e); err != nil {
			return false, err
		}
	}
	return denied, nil
}

// explainer explains pods of a cluster.
type explainer struct {
	*Simulator
	datasets      *placement.Explainer
	noPodDefaults bool // the cluster does not have the kind
}

func (x *explainer) explain(ctx context.Context, of *workload.Pod) (*Explanation, error) {
	given := of.Object
	namespace := cmp.Or(given.Namespace, x.Cluster.Namespace)
	known, err := x.defaults(ctx, namespace)
	if errors.Is(err, ErrNoPodDefaults) {
		x.noPodDefaults, known = true, &Defaults{namespace: namespace}
		x.keep(namespace, known)
	} else if err != nil {
		return nil, err
	}
	e := &Explanation{Object: given.Title(), Namespace: namespace}
	pod, err := known.owned(of)
	if err != nil {
		return nil, err
	}
	var stored *manifest.Object // as admitted
	if given.UID != "" {
		stored = given
		if pod, e.Basis, err = original(ctx, x.Cluster, given, known); err != nil {
			return nil, err
		}
	}
	out, err := x.try(ctx, pod, known)
	refused := err == nil && out.Denied != nil // by PodDefaults, and not by the API server afterwards
	if err == nil {
		err = x.askServer(ctx, e, known, stored, out, of.Controller)
	}
	if err != nil {
		return nil, err
	}
	if err := e.compare(pod, out, stored); err != nil {
		return nil, err
	}
	e.Warnings, e.Unknown = out.Warnings, out.Unanswered
	if out.Denied != nil {
		e.Denied = out.Denied.Message
	}
	e.match(known, stored, out, refused)
	if err := x.place(ctx, e, stored, out); err != nil {
		return nil, fmt.Errorf("%s: %s: datasets: %w", given.At(), given.Title(), err)
	}
	if x.noPodDefaults && e.Datasets == nil && e.Denied == "" && len(e.Carried) == 0 {
		return nil, ErrNoPodDefaults // nothing to explain
	}
	return e, nil
}

// place adds the nodes that the pod's datasets want.
func (x *explainer) place(ctx context.Context, e *Explanation, stored *manifest.Object, out *review.Outcome) error {
	pod := out.After
	if stored != nil {
		pod = stored.Raw
	} else if out.Denied != nil {
		return nil
	}
	var err error
	switch e.Datasets, err = x.datasets.Explain(ctx, e.Namespace, pod); {
	case err == nil || !dataset.IsRefusal(err):
		return err
	case stored != nil:
		e.Datasets = &placement.Placement{Problem: err.Error()}
	default:
		e.Denied = err.Error()
	}
	return nil
}

// match tells what the decision knew about each object, none of which applied if they refused the pod.
func (e *Explanation) match(known *Defaults, stored *manifest.Object, out *review.Outcome, refused bool) {
	added := addedBy(out)
	for _, d := range known.All {
		r := out.PodDefaults.Of(d.Plan)
		if r.Why == match.Excluded {
			e.Note = "the pod excludes itself by the annotation " + meta.ExcludeAnnotation
		}
		x := explained{Name: d.Plan.String(), Adds: added[d.Plan.String()], Exempt: r.By, Applied: r.Why == match.Applied && !refused}
		if stored != nil {
			x.Applied, x.Detail = d.wasApplied(stored, r)
		} else if x.Applied {
			x.Detail = d.rolledOutTo(r)
		} else {
			x.Detail = d.WhyNot(r, refused)
		}
		if reason := unmatched(r); reason != "" {
			if stored == nil || !d.wasDecided(stored) {
				e.NotMatching = append(e.NotMatching, notMatching{x.Name, reason})
			} else {
				e.Carried = append(e.Carried, explained{Name: x.Name, Applied: x.Applied, Detail: strings.TrimPrefix(x.Detail+"; it does not match now: "+reason, "; ")})
			}
			continue
		}
		if x.Exempt != nil && x.Applied {
			x.Detail += "; new pods are " + exemptUntil(x.Exempt)
		}
		for _, label := range r.Via {
			x.Detail += fmt.Sprintf("; selected by the label %s, which %s adds", label.Key, label.By)
		}
		x.Detail = strings.TrimPrefix(x.Detail, "; ")
		e.Matching = append(e.Matching, x)
	}
	if stored != nil {
		e.carry(known, stored)
	}
}

// unmatched returns why an object does not match a pod; empty if it does.
func unmatched(r match.Reason) string {
	switch r.Why {
	case match.NotCalled:
		return "no webhook of PodDefaults is called for such a pod"
	case match.NotSelected, match.AddedLabels:
		return r.Text
	}
	return ""
}

// wasDecided reports whether an admitted pod records a decision about it.
func (d *Default) wasDecided(stored *manifest.Object) bool {
	_, applied := stored.Annotations[d.Plan.Mark()]
	return applied || decidedOn(stored.Annotations, d)
}

// wasApplied explains the decision on an admitted pod, given that on such a pod if it were created now.
func (d *Default) wasApplied(stored *manifest.Object, now match.Reason) (applied bool, detail string) {
	mark, applied := d.Plan.MarkIn(stored.Annotations)
	decided := decidedOn(stored.Annotations, d)
	stable, _ := d.Plan.RolledOut()
	switch {
	case applied && d.Plan.Wrote(mark):
		return true, "current revision"
	case applied && stable != nil && stable.Wrote(mark):
		return true, fmt.Sprintf("as it was at %s, which is stable while revision %s is rolled out (%s%s)",
			mark.State(), revision.Short(d.Plan.Revision()), d.stage(), d.reaches(stored, now))
	case applied:
		return true, "as it was at " + mark.State() + "; it has changed since, and is at " +
			d.Plan.MarkNow().State() + " now"
	case now.Why == match.Excluded || now.Why == match.Exempt:
		return false, d.WhyNot(now, false)
	case decided && d.Plan.Audit:
		return false, "its mode is Audit"
	case decided:
		return false, "it was looked at and not applied: skipped because of a conflict, or it cannot work"
	case now.Why == match.Unusable && d.Plan.Problem() != nil:
		return false, d.WhyNot(now, false)
	case stored.CreationTimestamp.Time.Before(d.CreationTimestamp.Time):
		return false, "it was created after the pod"
	}
	return false, "the webhook was not asked, or the object was another one then: see the namespace selector and the failure policy of its configuration"
}

// rolledOutTo tells which revision a new pod gets while one is rolled out.
func (d *Default) rolledOutTo(now match.Reason) string {
	if _, inProgress := d.Plan.RolledOut(); !inProgress {
		return ""
	}
	current, got := revision.Short(d.Plan.Revision()), revision.Short(now.Object.Revision())
	if got == current {
		return fmt.Sprintf("revision %s, which is rolled out (%s)", current, d.stage())
	}
	return fmt.Sprintf("revision %s, which is stable while revision %s is rolled out (%s)", got, current, d.stage())
}

// stage returns where the rollout in progress is.
func (d *Default) stage() string {
	switch step := d.Plan.Step(); {
	case d.Spec.Rollout.AbortedRevision == d.Plan.Revision():
		return rollout.Aborted
	case step == 0:
		return "not begun"
	default:
		return fmt.Sprintf("step %d of %d", step, len(d.Spec.Rollout.Steps))
	}
}

// reaches tells whether the step of the rollout includes an admitted pod, if the pod's
// name or workload decides that.
func (d *Default) reaches(stored *manifest.Object, now match.Reason) string {
	if d.Spec.Rollout.By == kubeflowv1alpha1.RolloutByPod && stored.GenerateName != "" {
		return ""
	}
	switch {
	case now.Why != match.Applied || d.Plan.Step() == 0:
		return ""
	case now.Object.Revision() == d.Plan.Revision():
		return ", which includes the pod that replaces it"
	}
	return ", which does not include this pod"
}

// exemptUntil describes an exemption.
func exemptUntil(e *exempt.Exemption) string {
	return "exempt until " + e.Until.Format(time.RFC3339) + " (" + e.Reason + ")"
}

// WhyNot explains the decision on a new pod to which the object is not applied. It has no values of PodDefaults.
func (d *Default) WhyNot(r match.Reason, denied bool) string {
	if reason := unmatched(r); reason != "" {
		return reason
	}
	switch r.Why {
	case match.Exempt:
		return exemptUntil(r.By)
	case match.Excluded:
		return "the pod excludes itself"
	case match.Unusable:
		if d.Plan.Problem() != nil {
			return "it can never work: " + r.Text
		}
		return "it cannot work in this pod: " + r.Text
	case match.Audited:
		return "its mode is Audit"
	case match.Skipped:
		return "it would be skipped: " + r.Text
	case match.PassedOver:
		return "the containers that it selects are a mesh's"
	case match.OtherRevision:
		return "the stable revision applies to the pod (" + d.stage() + "), and does not select it"
	}
	if denied {
		return "the pod would be denied"
	}
	return "it would not be applied"
}
