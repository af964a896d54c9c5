// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/placement"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollout"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
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
func (t *Trial) Explain(ctx context.Context, objects []*manifest.Object, settings dataset.Settings, tell func(*Explanation) error) (denied bool, err error) {
	x := explainer{Trial: t}
	if x.datasets, err = placement.New(t.Cluster, settings, t.Notes); err != nil {
		return false, err
	}
	var pods []*workload.Pod
	for _, object := range objects {
		made, err := t.Cluster.PodsOf(ctx, object)
		if err != nil {
			return false, err
		}
		pods = append(pods, made...)
	}
	for _, pod := range pods {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := t.Checker.CheckPod(ctx, pod); err != nil {
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
	*Trial
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
	e.match(known, pod, stored, out)
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
	e.Datasets, err = x.datasets.Explain(ctx, e.Namespace, pod)
	switch {
	case err == nil || !dataset.IsRefusal(err):
		return err
	case stored != nil:
		e.Datasets = &placement.Placement{Problem: err.Error()}
	default:
		e.Denied = err.Error()
	}
	return nil
}

// match finds the objects for the pod. Labels that objects add select only those that the
// pod cannot exclude itself from.
func (e *Explanation) match(known *Defaults, pod, stored *manifest.Object, out *review.Outcome) {
	set := labels.Set(maps.Clone(pod.Labels))
	if set == nil {
		set = labels.Set{}
	}
	by := map[string]string{} // which object adds a label
	reasons := make([]string, len(known.all))
	for i, d := range known.all {
		reasons[i] = d.notFor(known, pod.Labels)
	}
	for i, d := range known.all {
		if reasons[i] != "" || !d.compiled.Injects() || known.exemption(d, pod) != nil {
			continue
		}
		for key, value := range d.spec.Labels {
			if _, there := set[key]; !there {
				set[key], by[key] = value, d.compiled.String()
			}
		}
	}
	for i, d := range known.all {
		switch {
		case reasons[i] == "":
		case !d.allowExclude:
			reasons[i] = d.notFor(known, set)
		case d.notFor(known, set) == "":
			reasons[i] += ", and labels that PodDefaults add do not select it"
		}
	}
	added := addedBy(out)
	whyNot := map[string]string{}
	after := annotationsOf(out.After)
	for i, d := range known.all {
		name := d.compiled.String()
		if _, rolledOut := d.compiled.RolledOut(); rolledOut {
			if _, applies := after[d.mark()]; applies { // in the stable revision, which selects other pods
				reasons[i] = ""
			}
		}
		if reasons[i] != "" {
			if whyNot[name] = reasons[i]; stored == nil || !d.wasDecided(stored) {
				e.NotMatching = append(e.NotMatching, notMatching{name, reasons[i]})
			}
			continue
		}
		x := explained{Name: name, Adds: added[name], Exempt: known.exemption(d, pod)}
		if stored != nil {
			x.Applied, x.Detail = d.wasApplied(stored, after)
		} else if _, x.Applied = after[d.mark()]; !x.Applied {
			x.Detail = d.whyNot(pod, after, e.Denied != "")
		}
		if x.Exempt != nil && x.Applied {
			x.Detail = strings.TrimPrefix(x.Detail+"; new pods are "+exemptUntil(x.Exempt), "; ")
		} else if x.Exempt != nil {
			x.Detail = exemptUntil(x.Exempt)
		}
		if via := d.selectedBy(pod, by); via != "" {
			x.Detail = strings.TrimPrefix(x.Detail+"; "+via, "; ")
		}
		e.Matching = append(e.Matching, x)
	}
	if stored != nil {
		e.carry(known, stored, whyNot)
	}
	if slices.ContainsFunc(known.all, func(d *Default) bool {
		return pod.Annotations[meta.ExcludeAnnotation] == "true" && d.allowExclude
	}) {
		e.Note = "the pod excludes itself by the annotation " + meta.ExcludeAnnotation
	}
}

// notFor returns why a pod with these labels is not selected, or "".
func (d *Default) notFor(known *Defaults, set labels.Set) string {
	if d.namespaces != nil {
		if why := mismatch(d.namespaces, known.labels, "the namespace"); why != "" {
			return "namespaceSelector: " + why
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&d.spec.Selector)
	if err != nil {
		return "its selector does not parse"
	}
	return mismatch(selector, set, "the pod")
}

// selectedBy names the objects whose labels select it, if the pod's own do not.
func (d *Default) selectedBy(pod *manifest.Object, by map[string]string) string {
	selector, err := metav1.LabelSelectorAsSelector(&d.spec.Selector)
	if err != nil || selector.Matches(labels.Set(pod.Labels)) {
		return ""
	}
	var via []string
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if who := by[r.Key()]; who != "" && !r.Matches(labels.Set(pod.Labels)) {
			via = append(via, fmt.Sprintf("selected by the label %s, which %s adds", r.Key(), who))
		}
	}
	return strings.Join(via, "; ")
}

// wasDecided reports whether an admitted pod records a decision about it.
func (d *Default) wasDecided(stored *manifest.Object) bool {
	_, applied := stored.Annotations[d.mark()]
	return applied || decidedOn(stored.Annotations, d)
}

// wasApplied explains the decision on an admitted pod. After are the annotations of such a
// pod if it were created now.
func (d *Default) wasApplied(stored *manifest.Object, after map[string]string) (applied bool, detail string) {
	mark, applied := d.compiled.MarkIn(stored.Annotations)
	decided := decidedOn(stored.Annotations, d)
	stable, _ := d.compiled.RolledOut()
	switch {
	case applied && d.compiled.Wrote(mark):
		return true, "current revision"
	case applied && stable != nil && stable.Wrote(mark):
		return true, fmt.Sprintf("as it was at %s, which is stable while revision %s is rolled out (%s%s)",
			markedState(mark), revision.Short(d.compiled.Revision()), d.stage(), d.reaches(stored, after))
	case applied:
		return true, "as it was at " + markedState(mark) + "; it has changed since, and is at " +
			markedState(d.compiled.MarkNow()) + " now"
	case stored.Annotations[meta.ExcludeAnnotation] == "true" && d.allowExclude:
		return false, "the pod excludes itself"
	case decided && d.spec.Mode == kubeflowv1alpha1.ModeAudit:
		return false, "its mode is Audit"
	case decided:
		return false, "it was looked at and not applied: skipped because of a conflict, or it cannot work"
	case d.compiled.Problem() != nil:
		return false, "it can never work: " + strings.ReplaceAll(d.compiled.Problem().Error(), "\n", "; ")
	case stored.CreationTimestamp.Time.Before(d.CreationTimestamp.Time):
		return false, "it was created after the pod"
	}
	return false, "the webhook was not asked, or the object was another one then: see the namespace selector and the failure policy of its configuration"
}

// stage returns where the rollout in progress is.
func (d *Default) stage() string {
	switch step := d.compiled.Step(); {
	case d.spec.Rollout.AbortedRevision == d.compiled.Revision():
		return rollout.Aborted
	case step == 0:
		return "not begun"
	default:
		return fmt.Sprintf("step %d of %d", step, len(d.spec.Rollout.Steps))
	}
}

// reaches tells whether the step of the rollout includes an admitted pod, if the pod's
// name or workload decides that.
func (d *Default) reaches(stored *manifest.Object, after map[string]string) string {
	if d.spec.Rollout.By == kubeflowv1alpha1.RolloutByPod && stored.GenerateName != "" {
		return ""
	}
	mark, applies := d.compiled.MarkIn(after)
	switch {
	case !applies || d.compiled.Step() == 0:
		return ""
	case d.compiled.Wrote(mark):
		return ", which includes the pod that replaces it"
	}
	return ", which does not include this pod"
}

// markedState describes the state of an object that a mark names.
func markedState(mark meta.CarriedMark) string {
	if mark.Revision == "" {
		return "resourceVersion " + mark.Value
	}
	return "resourceVersion " + mark.Value + ", revision " + revision.Short(mark.Revision)
}

// whyNot explains the decision on a new pod.
func (d *Default) whyNot(pod *manifest.Object, after map[string]string, denied bool) string {
	switch {
	case pod.Annotations[meta.ExcludeAnnotation] == "true" && d.allowExclude:
		return "the pod excludes itself"
	case d.compiled.Problem() != nil:
		return "it can never work: " + strings.ReplaceAll(d.compiled.Problem().Error(), "\n", "; ")
	case denied:
		return "the pod would be denied"
	case d.spec.Mode == kubeflowv1alpha1.ModeAudit:
		return "its mode is Audit"
	case decidedOn(after, d):
		if stable, _ := d.compiled.RolledOut(); stable != nil && stable.Selector() != nil && !stable.Selector().Matches(labels.Set(pod.Labels)) {
			return "the stable revision applies to the pod (" + d.stage() + "), and does not select it"
		}
		return "it would be skipped"
	}
	return "it would not be applied"
}
