// SPDX-License-Identifier: Apache-2.0

// Package proof proves that PodDefaults are applied: for a sample of them the API server
// creates a pod that each selects, in a dry run, and the result is compared with what
// `diff` foresees. Nothing is stored.
package proof

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/asked"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// An Answer says whether an object is applied.
type Answer string

// The answers.
const (
	Proven  Answer = "proven"  // the API server did what is foreseen
	Differs Answer = "differs" // it did something else
	Unknown Answer = "unknown" // it could not be tried
	Outside Answer = "outside" // the server's own configuration excludes such pods
	Idle    Answer = "idle"    // it applies to no pod: it is invalid, or its namespace is exempt
)

// A Result is the answer about one object. Reason names no values of PodDefaults.
type Result struct {
	Object    string
	Namespace string
	Answer    Answer
	Reason    string
}

// A Prover tries objects.
type Prover struct {
	// Simulator makes one for each attempt, because it remembers objects.
	Simulator func() *injection.Simulator
	// Policy is the name of the server's backstop policy.
	Policy string
}

// Run tries a sample of all objects. Total is how many there are. An error means that
// objects could not be listed.
func (p *Prover) Run(ctx context.Context) (results []Result, total int, err error) {
	simulator := p.Simulator()
	chosen, total, err := sample(ctx, simulator.Cluster)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range chosen {
		r := p.try(ctx, simulator, o)
		if r.Answer == Differs { // it may have been written meanwhile
			simulator = p.Simulator()
			r = p.try(ctx, simulator, o)
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		results = append(results, r)
	}
	return results, total, nil
}

func (p *Prover) try(ctx context.Context, simulator *injection.Simulator, o one) Result {
	answer, reason := p.attempt(ctx, simulator, o)
	return Result{Object: o.Plan.String(), Namespace: o.namespace, Answer: answer, Reason: reason}
}

func (p *Prover) attempt(ctx context.Context, simulator *injection.Simulator, o one) (Answer, string) {
	if o.namespace == "" {
		return Unknown, "it selects no namespace"
	}
	pod, err := newPod(o.namespace, &o.Spec.Selector)
	if err != nil {
		return Unknown, err.Error()
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return Unknown, err.Error()
	}
	objects, err := manifest.FromJSON(raw)
	if err != nil {
		return Unknown, err.Error()
	}
	simulated, hidden, err := simulator.Simulate(ctx, objects[0])
	if err != nil {
		return Unknown, "it could not be foreseen: " + err.Error()
	}
	server, err := dryrun.New(simulator.Cluster.Config, nil)
	if err != nil {
		return Unknown, err.Error()
	}
	answer, err := server.Ask(ctx, dryrun.NewPod(o.namespace, raw))
	if err != nil {
		return Unknown, err.Error()
	}
	got := &corev1.Pod{}
	if answer.Verdict != dryrun.Accepted {
		return p.refused(simulated, answer)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, got); err != nil {
		return Unknown, err.Error()
	}
	if simulated.Denied != nil {
		return p.notCalled(ctx, simulator, pod, "the pod is admitted, although the webhook would deny it")
	}
	if why := idle(o.Default, simulated); why != "" {
		return Idle, why
	}
	missing, extra := compareMarks(simulated, got)
	switch {
	case len(missing) > 0:
		return p.notCalled(ctx, simulator, pod, "pods are created without "+strings.Join(missing, ", "))
	case len(extra) > 0 && hidden:
		return Unknown, "you may not read all PodDefaults that apply"
	case len(extra) > 0:
		return Differs, "pods also get " + strings.Join(extra, ", ")
	}
	places, err := dryrun.Lacking(simulated.Before, simulated.After, got)
	switch {
	case err != nil:
		return Unknown, err.Error()
	case len(places) > 0:
		return Differs, "pods are marked as injected, but lack " + listed(places) + "; another webhook may have changed it"
	}
	return Proven, ""
}

// idle says why an object applies to no pod like the simulated one; empty if the webhook looks at it.
func idle(d *injection.Default, simulated *review.Outcome) string {
	switch r := simulated.PodDefaults.Of(d.Plan); r.Why {
	case match.Applied, match.Audited, match.Skipped, match.PassedOver, match.Refused:
		return ""
	case match.Unusable:
		if d.Plan.Problem() == nil { // a volume of the workload may be missing
			return ""
		}
		fallthrough
	default:
		return d.WhyNot(r, false)
	}
}

// notCalled finds out why a pod is not injected.
func (p *Prover) notCalled(ctx context.Context, simulator *injection.Simulator, pod *corev1.Pod, what string) (Answer, string) {
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return Differs, what
	}
	why, intended, err := asked.NotCalled(ctx, simulator.Cluster, value, pod.Namespace, pod.Name)
	switch {
	case err != nil || why == "":
		return Differs, what
	case intended:
		return Outside, "the server's own configuration excludes such pods: " + why
	}
	return Differs, what + ": the API server does not call the webhook, " + why
}

// address is that of a webhook in an error of the API server.
var address = regexp.MustCompile(`Post "[^"]*": `)

// refused judges the answer to a dry run that is not accepted.
func (p *Prover) refused(simulated *review.Outcome, answer *dryrun.Answer) (Answer, string) {
	text := address.ReplaceAllString(cmp.Or(answer.Said, answer.Reason), "") // a path may be private
	ours := strings.Contains(text, `"`+poddefault.Name+`"`)
	switch {
	case strings.Contains(text, "does not support dry run"):
		return Unknown, "another webhook has side effects and does not support a dry run: " + text
	case ours && strings.Contains(text, "denied the request") && simulated.Denied != nil:
		return Proven, ""
	case ours && strings.Contains(text, "denied the request"):
		return Differs, "pods are denied, which is not foreseen: " + text
	case ours:
		return Differs, "calls of the webhook fail: " + text
	case p.Policy != "" && strings.Contains(text, "ValidatingAdmissionPolicy '"+p.Policy+"'"):
		return Differs, "pods are rejected by the policy that stands in for the webhook, because it does not see that they were injected"
	case answer.Status != nil && answer.Status.Reason == metav1.StatusReasonInvalid && simulated.Denied == nil:
		return Differs, "the API server rejects the injected pod: " + invalid(answer.Status)
	}
	return Unknown, "the pod that doctor sends is rejected: " + text
}

// invalid describes a refusal without the values in it.
func invalid(refusal *metav1.Status) string {
	if refusal.Details == nil {
		return "it is invalid"
	}
	var causes []string
	for _, c := range refusal.Details.Causes {
		causes = append(causes, fmt.Sprintf("%s (%s)", c.Field, c.Type))
	}
	return listed(causes)
}

func listed(places []string) string {
	const most = 5
	if len(places) > most {
		return strings.Join(places[:most], ", ") + fmt.Sprintf(" and %d more", len(places)-most)
	}
	return strings.Join(places, ", ")
}

// compareMarks compares marks by object and revision, and decisions. Resource versions change
// with each status.
func compareMarks(simulated *review.Outcome, got *corev1.Pod) (missing, extra []string) {
	var after corev1.Pod
	if err := json.Unmarshal(simulated.After, &after); err != nil {
		return []string{"what is foreseen: " + err.Error()}, nil
	}
	marks := func(pod *corev1.Pod) map[string]string {
		out := map[string]string{}
		for _, m := range meta.Marks(pod.Annotations) {
			out[m.Title(got.Namespace)] = m.Revision
		}
		return out
	}
	want, have := marks(&after), marks(got)
	for _, title := range slices.Sorted(maps.Keys(want)) {
		if revision, there := have[title]; !there {
			missing = append(missing, title)
		} else if revision != want[title] {
			missing = append(missing, title+" in its current revision")
		}
	}
	for _, title := range slices.Sorted(maps.Keys(have)) {
		if _, there := want[title]; !there {
			extra = append(extra, title)
		}
	}
	decided := strings.Split(got.Annotations[meta.DecisionsAnnotation], ",")
	for _, name := range strings.Split(after.Annotations[meta.DecisionsAnnotation], ",") {
		if name != "" && len(missing) == 0 && !slices.Contains(decided, name) {
			missing = append(missing, "a decision about "+name)
		}
	}
	return missing, extra
}
