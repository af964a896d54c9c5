// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// maxPods limits the pods of a list, of which a page has some. It says how many it leaves out.
const maxPods = 5000

// newSimulator evaluates the PodDefaults that the user may read.
func newSimulator(v *visit, validation string) *injection.Simulator {
	return &injection.Simulator{
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
	_, err = newSimulator(v, fieldcheck.Warn).Explain(ctx, []*manifest.Object{object}, v.Dataset, func(e *injection.Explanation) error {
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
	v.heading = object.Title()
	v.data = struct {
		Pods  []*admitted `json:"pods"`
		Chain []lint.Link `json:"chain"`
	}{pods, chain.links}
	return workloadPage(v, object, groupPods(pods), chain), nil
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
	return nil, fmt.Errorf("%w: no kind %q that has pods is known: choose one of the list, or paste the object into the page Try it", explain.ErrBadInput, manifest.Printable(word))
}

func showPodList(ctx context.Context, v *visit) (templ.Component, error) {
	var rows [][]cell
	type listed struct {
		Name, Owner string
		Decisions   string `json:"podDefaultsConsidered"`
	}
	list := []listed{}
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
		list = append(list, listed{pod.Name, owner.text, pod.Annotations[meta.DecisionsAnnotation]})
		rows = append(rows, []cell{
			{{text: pod.Name, href: v.link("pod", "namespace", v.cluster.Namespace, "type", "pod", "name", pod.Name)}}, {owner},
			text(strings.ReplaceAll(pod.Annotations[meta.DecisionsAnnotation], ",", ", ")),
		})
	})
	if err = v.hide("list pods of the namespace "+v.cluster.Namespace, err); err != nil {
		return nil, err
	}
	v.data = list
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
		result := badge("note", "not applied")
		if m.Applied {
			result = badge("ok", "applied")
		}
		var adds cell
		for _, added := range m.Adds {
			adds = append(adds, piece{class: "code", text: added})
		}
		out = append(out, []cell{text(m.Name), {result}, text(m.Detail), adds})
	}
	for _, m := range e.NotMatching {
		out = append(out, []cell{text(m.Name), {badge("quiet", "does not match")}, text(m.Reason), nil})
	}
	return out
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
	counters, err := v.calls(ctx)
	if err != nil {
		return nil, err
	}
	out := &admissionChain{}
	for _, unread := range found.Unread {
		out.unread = append(out.unread, unread.Reason)
	}
	for _, link := range found.Chain {
		if link.Answer == matcher.Out {
			out.out++
			continue
		}
		out.links = append(out.links, link)
		class, u := "", counters.Of(link, "CREATE")
		if link.Answer == matcher.Refused {
			class = "fix"
		}
		out.stations = append(out.stations, station(counters, &link, u, class))
		out.rows = append(out.rows, []cell{
			text(link.Name), text(string(link.Phase)), {{text: string(link.Answer)}, {class: "quiet", text: link.Why}},
			text(whenItFails(link)), counted(counters, u),
		})
	}
	return out, nil
}

type admissionChain struct {
	rows   [][]cell
	out    int // webhooks and policies that do not apply
	unread []string
	// links and stations are those of the rows.
	links    []lint.Link
	stations []draw.Station
}

// path draws the way of a pod, with what PodDefaults changed at the webhook that injects them.
func (c *admissionChain) path(pod *admitted) string {
	var list []draw.Stage
	for _, phase := range lint.Phases() {
		stage := stageOf(phase)
		for i, link := range c.links {
			if link.Phase != phase {
				continue
			}
			s := c.stations[i]
			if phase == lint.MutatingWebhooks && strings.HasSuffix(link.Name, "/"+poddefault.Name) {
				for j, name := range pod.applied() {
					s.Origins = append(s.Origins, draw.Origin{Name: name, Color: j})
				}
			}
			stage.Stations = append(stage.Stations, s)
		}
		list = append(list, stage)
	}
	return draw.Path("The way of the pod through admission: mutating policies and webhooks, then validation", list)
}

// applied are the PodDefaults that change the pod, in order.
func (a *admitted) applied() []string {
	var out []string
	for _, m := range slices.Concat(a.Matching, a.Carried) {
		if m.Applied {
			out = append(out, m.Name)
		}
	}
	return out
}

// color is the class of what an origin changed.
func (a *admitted) color(origin string) string {
	for i, name := range a.applied() {
		if name == origin {
			return "origin " + draw.OriginClass(i)
		}
	}
	return ""
}
