// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
)

// showPodDefaults shows the PodDefaults for a namespace, or how many each namespace has.
func showPodDefaults(ctx context.Context, v *visit) (templ.Component, error) {
	namespaces, err := v.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	if v.chosen() == "" {
		counts, err := countPodDefaults(ctx, v)
		if err != nil {
			return nil, err
		}
		if counts != nil || v.Namespace == "" {
			return podDefaultNamespaces(v, namespaces, counts), nil
		}
	}
	survey, err := injection.NewSurvey(ctx, v.cluster, v.cluster.Namespace, &v.notes)
	if errors.Is(err, injection.ErrNoPodDefaults) {
		return nothing(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	if survey.PodsHidden {
		v.hidden = append(v.hidden, "list pods in the namespace "+v.cluster.Namespace)
	}
	return podDefaults(v, namespaces, survey), nil
}

// A namespaceCount is how many PodDefaults a namespace has.
type namespaceCount struct {
	namespace string
	count     int
}

// countRows are the rows of the table of namespaces.
func countRows(v *visit, counts []namespaceCount) [][]cell {
	var out [][]cell
	for _, c := range counts {
		out = append(out, []cell{{{text: c.namespace, href: v.link("poddefaults", "namespace", c.namespace)}}, text(strconv.Itoa(c.count))})
	}
	return out
}

// countPodDefaults returns the namespaces with PodDefaults. It is nil if the user may not list them in all
// namespaces, or if the cluster has none of the kind.
func countPodDefaults(ctx context.Context, v *visit) ([]namespaceCount, error) {
	out := []namespaceCount{}
	err := v.cluster.EachMetadata(ctx, "/apis/"+kubeflowv1alpha1.GroupVersion.String()+"/"+kubeflowv1alpha1.PodDefaultResource, "", func(o *metav1.ObjectMeta) {
		i, found := slices.BinarySearchFunc(out, o.Namespace, func(c namespaceCount, name string) int { return cmp.Compare(c.namespace, name) })
		if !found {
			out = slices.Insert(out, i, namespaceCount{namespace: o.Namespace})
		}
		out[i].count++
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, v.hide("list poddefaults in all namespaces: choose one of yours", err)
	}
	return out, nil
}

// namespaces lists the names of all namespaces, none if the user may not list them.
func (v *visit) namespaces(ctx context.Context) ([]string, error) {
	var names []string
	err := v.cluster.EachMetadata(ctx, "/api/v1/namespaces", "", func(o *metav1.ObjectMeta) { names = append(names, o.Name) })
	if err := v.hide("list namespaces", err); err != nil {
		return nil, err
	}
	return names, nil
}

// conflicting are the indexes of the objects that have a conflict, in order.
func conflicting(s *injection.Survey) []int {
	var out []int
	for _, c := range s.Conflicts {
		out = append(out, c.A, c.B)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// shortList joins at most most elements.
func shortList(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// anchor is the identifier of an object on the page.
func anchor(d *injection.Surveyed) string { return strings.ToLower(d.Kind) + "-" + d.Name }

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
