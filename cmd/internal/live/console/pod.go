// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/aymanbagabas/go-udiff"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// Limits of what a page shows. It says how much it leaves out.
const (
	maxLines      = 4000
	maxCharacters = 500 // of a line
	maxPods       = 500
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

func showPodList(ctx context.Context, v *visit) (templ.Component, error) {
	var rows [][]cell
	more := 0
	err := v.cluster.EachMetadata(ctx, workload.Kinds()[0].Path(v.cluster.Namespace), "", func(pod *metav1.ObjectMeta) {
		if len(rows) == maxPods {
			more++
			return
		}
		var owner piece
		if of := metav1.GetControllerOf(pod); of != nil {
			owner.text = of.Kind + " " + of.Name
			if knownKind(of.Kind) {
				owner.href = v.link("pod", "namespace", v.cluster.Namespace, "type", strings.ToLower(of.Kind), "name", of.Name)
			}
		}
		rows = append(rows, []cell{
			{{text: pod.Name, href: v.link("pod", "namespace", v.cluster.Namespace, "type", "pod", "name", pod.Name)}}, {owner},
			text(strings.ReplaceAll(pod.Annotations[meta.DecisionsAnnotation], ",", ", ")),
		})
	})
	if err = v.hide("list pods of the namespace "+v.cluster.Namespace, err); err != nil {
		return nil, err
	}
	return podsPage(v, rows, more), nil
}

// knownKind reports whether the console can explain a kind by name.
func knownKind(name string) bool {
	return slices.ContainsFunc(workload.Kinds(), func(kind workload.Kind) bool { return kind.Name == name })
}

// defaultRows are the PodDefaults that were considered for a pod.
func defaultRows(e *injection.Explanation) [][]cell {
	var out [][]cell
	for _, m := range slices.Concat(e.Matching, e.Carried) {
		result := piece{class: "note", text: "not applied"}
		if m.Applied {
			result = piece{class: "ok", text: "applied"}
		}
		var adds cell
		for _, added := range m.Adds {
			adds = append(adds, piece{class: "code", text: added})
		}
		out = append(out, []cell{text(m.Name), {result}, text(m.Detail), adds})
	}
	for _, m := range e.NotMatching {
		out = append(out, []cell{text(m.Name), text("does not match"), text(m.Reason), nil})
	}
	return out
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
	rows, more, err := v.sideBySide(lines)
	return &admitted{Explanation: e, rows: rows, more: more}, err
}

// sideBySide is the function of this name for a page, whose rows have at most maxAnswer bytes together.
func (v *visit) sideBySide(lines []review.Line) (rows []row, more int, err error) {
	rows, more = sideBySide(lines)
	for _, r := range rows {
		v.rows += len(r.before) + len(r.after)
	}
	if v.rows > maxAnswer {
		return nil, 0, errTooLarge
	}
	return rows, more, nil
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
	for i, line := range lines {
		text, origin := shorten(line.Text), line.Source
		is := line.Kind != udiff.Equal && line.Cause == ""
		if is && i+1 < len(lines) && lines[i+1].Source != "" && lines[i+1].Kind == line.Kind {
			is = false // it only holds what follows
		}
		if is && !unknown {
			origin = unknownOrigin
		}
		unknown = is
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
	if len(rows) > maxLines {
		rows, more = rows[:maxLines], len(rows)-maxLines
	}
	return rows, more
}

func shorten(text string) string {
	if len(text) <= maxCharacters {
		return manifest.Printable(text)
	}
	return fmt.Sprintf("%s… (%d bytes in all)", manifest.Printable(strings.ToValidUTF8(text[:maxCharacters], "")), len(text))
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
	calls, err := v.calls(ctx)
	if err != nil {
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
		out.rows = append(out.rows, []cell{
			text(link.Name), text(string(link.Phase)), {{text: string(link.Answer)}, {class: "quiet", text: link.Why}},
			text(whenItFails(link)), calls.counted(calls.of(link, "CREATE")),
		})
	}
	return out, nil
}

type admissionChain struct {
	rows   [][]cell
	out    int // webhooks and policies that do not apply
	unread []string
}
