// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// showPodDefaults shows the PodDefaults for a namespace, or how many each namespace has.
func showPodDefaults(ctx context.Context, v *visit) (templ.Component, error) {
	if v.chosen() == "" {
		counts, err := countPodDefaults(ctx, v)
		if err != nil {
			return nil, err
		}
		if counts != nil || v.Namespace == "" {
			v.data = counts
			return podDefaultNamespaces(v, counts), nil
		}
	}
	survey, err := carried.NewSurvey(ctx, v.cluster, v.cluster.Namespace, &v.notes)
	if errors.Is(err, injection.ErrNoPodDefaults) {
		return nothing(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	if survey.PodsHidden {
		v.hidden = append(v.hidden, "list pods in the namespace "+v.cluster.Namespace)
	}
	v.data = survey
	return podDefaults(v, survey), nil
}

// A namespaceCount is how many PodDefaults a namespace has.
type namespaceCount struct {
	Namespace string `json:"namespace"`
	Count     int    `json:"podDefaults"`
}

// countRows are the rows of the table of namespaces.
func countRows(v *visit, counts []namespaceCount) [][]cell {
	var out [][]cell
	for _, c := range counts {
		out = append(out, []cell{{{text: c.Namespace, href: v.link("poddefaults", "namespace", c.Namespace)}}, number(c.Count)})
	}
	return out
}

// countPodDefaults returns the namespaces with PodDefaults. It is nil if the user may not list them in all
// namespaces, or if the cluster has none of the kind.
func countPodDefaults(ctx context.Context, v *visit) ([]namespaceCount, error) {
	out := []namespaceCount{}
	err := v.cluster.EachMetadata(ctx, injection.CollectionOf(false, ""), "", func(o *metav1.ObjectMeta) {
		i, found := slices.BinarySearchFunc(out, o.Namespace, func(c namespaceCount, name string) int { return cmp.Compare(c.Namespace, name) })
		if !found {
			out = slices.Insert(out, i, namespaceCount{Namespace: o.Namespace})
		}
		out[i].Count++
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, v.hide("list poddefaults in all namespaces: choose one of yours", err)
	}
	return out, nil
}

// maxNames limits the namespaces that a picker offers. Others can be typed.
const maxNames = 500

// listNamespaces lists the names of namespaces for the picker, none if the user may not list them.
func (v *visit) listNamespaces(ctx context.Context) []string {
	var names []string
	err := v.cluster.EachMetadata(ctx, "/api/v1/namespaces", "", func(o *metav1.ObjectMeta) {
		if len(names) < maxNames {
			names = append(names, o.Name)
		}
	})
	if err != nil {
		return nil // the name can be typed
	}
	return names
}

// mapOf draws what the PodDefaults of a namespace bring, and how many pods have them.
func mapOf(s *carried.Survey) string {
	var defaults, brought, pods []draw.Node
	var left, right []draw.Edge
	at := map[string]int{}
	for i, d := range s.Defaults {
		class := ""
		if d.Problem != "" {
			class = "fix"
		}
		defaults = append(defaults, draw.Node{Text: d.Kind + " " + d.Name, Class: class})
		for _, f := range d.Adds {
			text := f.Name
			if _, seen := at[text]; !seen {
				at[text] = len(brought)
				brought = append(brought, draw.Node{Text: text, Class: "quiet"})
			}
			left = append(left, draw.Edge{From: at[text], To: i})
		}
		add := func(count int, what, class string) {
			if count > 0 {
				right = append(right, draw.Edge{From: i, To: len(pods), Class: class})
				pods = append(pods, draw.Node{Text: cli.Count(count, "pod", "pods") + " " + what, Class: class})
			}
		}
		older := 0
		for _, c := range d.Carriers {
			if c.Current {
				add(len(c.Pods), "with the current version", "ok")
			} else {
				older += len(c.Pods)
			}
		}
		add(older, "with an older version", "note")
		add(len(d.Without), "created before it", "note")
		add(len(d.Missed), "missed", "fix")
	}
	if len(defaults) == 0 {
		return ""
	}
	return draw.Map("What PodDefaults add, and the pods that have it", []string{"Adds", "PodDefaults", "Pods"}, [][]draw.Node{brought, defaults, pods}, [][]draw.Edge{left, right})
}

// reportOf is the command for what the server has found about the namespace, if it writes reports.
func reportOf(v *visit) cell {
	return cell{{text: "kubectl --namespace " + v.cluster.Namespace + " get reports.openreports.io sallyport --output yaml", copied: true}}
}

// conflicting are the indexes of the objects that have a conflict, in order.
func conflicting(s *carried.Survey) []int {
	var out []int
	for _, c := range s.Conflicts {
		out = append(out, c.A, c.B)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// shortList joins a few elements.
func shortList(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// anchor is the identifier of an object on the page.
func anchor(d *carried.Surveyed) string { return strings.ToLower(d.Kind) + "-" + d.Name }

// conditionClass returns the style of a condition: whether True is good depends on its type.
func conditionClass(c metav1.Condition) string {
	switch {
	case c.Type == kubeflowv1alpha1.ConditionUISelectable || c.Status == metav1.ConditionUnknown:
		return "quiet"
	case (c.Type == kubeflowv1alpha1.ConditionConflicting) == (c.Status == metav1.ConditionTrue):
		return "fix"
	}
	return "ok"
}
