// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/a-h/templ"
	"github.com/aymanbagabas/go-udiff"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/callmetrics"
	"github.com/sallyport-io/sallyport/internal/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/injection"
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/replay/review"
	"github.com/sallyport-io/sallyport/internal/resources"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/workload"
	"github.com/sallyport-io/sallyport/lint"
)

// Limits of what a page shows. It says how much it leaves out.
const (
	mostLines      = 4000
	mostCharacters = 500 // of a line
	mostPods       = 500
)

// trial evaluates the PodDefaults that the user may read.
func (v *visit) trial(validation string) *injection.Trial {
	return &injection.Trial{
		Cluster: v.cluster, Webhooks: v.Webhooks, Checker: fieldcheck.New(validation, &v.notes, &fieldcheck.Definitions{}), Notes: &v.notes,
	}
}

// showsValues reports whether the user asked for the values of variables and annotations.
func (v *visit) showsValues() bool { return v.FormValue("values") == "show" }

// showPod explains the pods of a workload, or lists the pods of the namespace.
func showPod(ctx context.Context, v *visit) (templ.Component, error) {
	name, err := v.value("name")
	if err != nil {
		return nil, err
	}
	if name == "" {
		return showPodList(ctx, v)
	}
	object, err := v.workload(ctx, cmp.Or(v.FormValue("type"), "pod"), name)
	if err != nil {
		return nil, err
	}
	var pods []*admitted
	_, err = v.trial(fieldcheck.Warn).Explain(ctx, []*manifest.Object{object}, v.Dataset, func(e *injection.Explanation) error {
		pod, err := v.admitted(e)
		pods = append(pods, pod)
		return err
	})
	if err != nil {
		return nil, err
	}
	chain, err := v.chain(ctx, pods[0].Explanation)
	if err != nil {
		return nil, err
	}
	return workloadPage(v, object, pods, chain), nil
}

// workload reads an object of a kind that kubectl would know by this word.
func (v *visit) workload(ctx context.Context, word, name string) (*manifest.Object, error) {
	for _, kind := range workload.Kinds() {
		if !kind.Named(word) {
			continue
		}
		object, err := v.cluster.Get(ctx, kind.Path(v.cluster.Namespace)+"/"+name)
		if err != nil {
			err = fmt.Errorf("%s %s in the namespace %s: %w", kind.Name, name, v.cluster.Namespace, err)
		}
		return object, err
	}
	return nil, fmt.Errorf("%w: no kind %q that has pods is known: choose one of the list, or paste the object into the page Try it", errBadInput, manifest.Printable(word))
}

// A listedPod is a row of the list of pods.
type listedPod struct {
	name, owner, ownerKind string
	// decisions are the PodDefaults that were considered.
	decisions string
}

func showPodList(ctx context.Context, v *visit) (templ.Component, error) {
	var pods []listedPod
	more := 0
	err := v.cluster.EachMetadata(ctx, workload.Kinds()[0].Path(v.cluster.Namespace), "", func(pod *metav1.ObjectMeta) {
		if len(pods) == mostPods {
			more++
			return
		}
		listed := listedPod{name: pod.Name, decisions: strings.ReplaceAll(pod.Annotations[poddefault.DecisionsAnnotation], ",", ", ")}
		if owner := metav1.GetControllerOf(pod); owner != nil {
			listed.owner, listed.ownerKind = owner.Name, owner.Kind
		}
		pods = append(pods, listed)
	})
	if err = v.hide("list pods of the namespace "+v.cluster.Namespace, err); err != nil {
		return nil, err
	}
	return podsPage(v, pods, more), nil
}

// knownKind reports whether the console can explain a kind by name.
func knownKind(name string) bool {
	for _, kind := range workload.Kinds() {
		if kind.Name == name {
			return true
		}
	}
	return false
}

// An admitted is a pod as it was sent and as it is stored, or would be.
type admitted struct {
	*injection.Explanation
	rows []row
	more int // rows that are left out
}

func (v *visit) admitted(e *injection.Explanation) (*admitted, error) {
	lines, err := e.Lines(v.showsValues())
	if err != nil {
		return nil, err
	}
	rows, more := sideBySide(lines)
	return &admitted{Explanation: e, rows: rows, more: more}, nil
}

// A row has a line before and a line after a change, side by side.
type row struct {
	before, after string
	// removed and added report whether the lines are part of the change.
	removed, added bool
	origin         string
}

// unknownOrigin is said of changes that no PodDefault makes.
const unknownOrigin = "the API server or another webhook"

// sideBySide returns the rows of a table, and how many it leaves out.
func sideBySide(lines []review.Line) (rows []row, more int) {
	removed := 0     // rows at the end with a line before only
	unknown := false // the row above has the unknown origin
	for _, line := range lines {
		text, origin := shorten(line.Text), line.Source
		if line.Kind != udiff.Equal && line.Cause == "" && !unknown {
			origin = unknownOrigin
		}
		unknown = line.Kind != udiff.Equal && line.Cause == ""
		switch line.Kind {
		case udiff.Delete:
			rows = append(rows, row{before: text, removed: true, origin: origin})
			removed++
		case udiff.Insert:
			if removed > 0 {
				beside := &rows[len(rows)-removed]
				beside.after, beside.added, beside.origin = text, true, cmp.Or(origin, beside.origin)
				removed--
				continue
			}
			rows = append(rows, row{after: text, added: true, origin: origin})
		default:
			rows = append(rows, row{before: text, after: text})
			removed = 0
		}
	}
	if len(rows) > mostLines {
		rows, more = rows[:mostLines], len(rows)-mostLines
	}
	return rows, more
}

func shorten(text string) string {
	if len(text) <= mostCharacters {
		return manifest.Printable(text)
	}
	return fmt.Sprintf("%s… (%d bytes in all)", manifest.Printable(strings.ToValidUTF8(text[:mostCharacters], "")), len(text))
}

// A chainLink is a webhook or policy that the API server considers for new pods.
type chainLink struct {
	lint.Link
	// usage is nil if the API server has not called it since it started, or its metrics may not
	// be read.
	usage *callmetrics.Usage
}

// failure says what happens if it fails.
func (l chainLink) failure() string {
	parts := []string{l.FailurePolicy}
	if l.TimeoutSeconds > 0 {
		parts = append(parts, fmt.Sprintf("after %d s", l.TimeoutSeconds))
	}
	return strings.Join(append(parts, l.Actions...), ", ")
}

// figures are the calls, and the median and the 99th percentile of their latency.
func (l chainLink) figures() []string {
	if l.usage == nil {
		return []string{"-", "-", "-"}
	}
	return []string{fmt.Sprintf("%.0f", l.usage.Calls), callmetrics.Duration(l.usage.P50), callmetrics.Duration(l.usage.P99)}
}

// chain returns the webhooks and policies for a pod in the API server's order, without those that
// are for other resources or namespaces.
func (v *visit) chain(ctx context.Context, e *injection.Explanation) (*admissionChain, error) {
	admission, err := inspect.AdmissionOfCluster(ctx, v.cluster, inspect.AdmissionKinds())
	if err != nil {
		return nil, err
	}
	pods := &resources.Resource{
		GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespaced: true,
	}
	found, err := admission.Chain(ctx, pods, inspect.Question{Operation: "CREATE", Namespace: e.Namespace, Object: e.Sent})
	if err != nil {
		return nil, err
	}
	var usages []*callmetrics.Usage
	counters, err := callmetrics.Read(ctx, v.cluster.Client.Discovery().RESTClient())
	if err == nil {
		usages, err = callmetrics.Usages(nil, counters)
	}
	if err = v.hide("get the metrics of the API server: latency", err); err != nil {
		return nil, err
	}
	out := &admissionChain{}
	for _, unread := range found.Unread {
		out.unread = append(out.unread, unread.Reason)
	}
	for _, link := range found.Chain {
		if link.Answer == lint.Out {
			out.out++
			continue
		}
		out.links = append(out.links, chainLink{Link: link, usage: usageOf(link, usages)})
	}
	return out, nil
}

type admissionChain struct {
	links  []chainLink
	out    int // webhooks and policies that do not apply
	unread []string
}

// usageOf returns the calls of a link for CREATE, or for all operations where the API server does
// not count them apart.
func usageOf(link lint.Link, usages []*callmetrics.Usage) *callmetrics.Usage {
	kinds := map[lint.Phase]string{
		lint.MutatingPolicies: callmetrics.MutatingPolicy, lint.MutatingWebhooks: callmetrics.Mutating,
		lint.ValidatingPolicies: callmetrics.ValidatingPolicy, lint.ValidatingWebhooks: callmetrics.Validating,
	}
	configuration, name, _ := strings.Cut(link.Name, "/")
	if link.Phase == lint.MutatingPolicies || link.Phase == lint.ValidatingPolicies {
		name = configuration // the policy, before its binding
	}
	for _, u := range usages {
		if u.Name != name || u.Kind != kinds[link.Phase] {
			continue
		}
		for _, operation := range u.Operations {
			if operation.Operation == "CREATE" {
				return operation
			}
		}
		if len(u.Operations) == 0 {
			return u
		}
	}
	return nil
}
