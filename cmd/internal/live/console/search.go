// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// maxFound limits the objects of a kind that a search shows.
const maxFound = 50

// A searchable kind. Path is that of all namespaces, or of one.
type searchable struct {
	kind string
	path func(namespace string) string
	link func(v *visit, o *metav1.ObjectMeta) string
}

// searchables are the kinds that a search looks through, by name.
func searchables() []searchable {
	admission := func(resource string) func(string) string {
		return func(string) string { return "/apis/admissionregistration.k8s.io/v1/" + resource }
	}
	toWebhooks := func(v *visit, o *metav1.ObjectMeta) string { return v.link("webhooks", "q", o.Name) }
	out := []searchable{
		{"Namespace", func(string) string { return "/api/v1/namespaces" }, func(v *visit, o *metav1.ObjectMeta) string { return v.link("poddefaults", "namespace", o.Name) }},
		{"PodDefault", func(namespace string) string { return injection.CollectionOf(false, namespace) }, func(v *visit, o *metav1.ObjectMeta) string {
			return v.link("rollouts", "namespace", o.Namespace, "type", "poddefault", "name", o.Name)
		}},
		{"ClusterPodDefault", func(string) string { return injection.CollectionOf(true, "") }, func(v *visit, o *metav1.ObjectMeta) string {
			return v.link("rollouts", "type", "clusterpoddefault", "name", o.Name)
		}},
		{"MutatingWebhookConfiguration", admission("mutatingwebhookconfigurations"), toWebhooks},
		{"ValidatingWebhookConfiguration", admission("validatingwebhookconfigurations"), toWebhooks},
		{"ValidatingAdmissionPolicy", admission("validatingadmissionpolicies"), toWebhooks},
		{"MutatingAdmissionPolicy", admission("mutatingadmissionpolicies"), toWebhooks},
	}
	for _, kind := range workload.Kinds() {
		out = append(out, searchable{kind.Name, kind.Path, func(v *visit, o *metav1.ObjectMeta) string {
			return v.link("pod", "namespace", o.Namespace, "type", strings.ToLower(kind.Name), "name", o.Name)
		}})
	}
	return out
}

// A hit is an object whose name has the text.
type hit struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// A searchResult has the first objects of a kind, and how many match.
type searchResult struct {
	hits      []hit
	rows      [][]cell
	matching  int
	forbidden bool
}

// search looks through the objects of the kind. What the cluster does not have has no objects.
func (s *searchable) search(ctx context.Context, v *visit, text string) (r searchResult, err error) {
	err = v.cluster.EachMetadata(ctx, s.path(v.chosen()), "", func(o *metav1.ObjectMeta) {
		if !strings.Contains(o.Name, text) {
			return
		}
		if r.matching++; r.matching > maxFound {
			return
		}
		r.hits = append(r.hits, hit{s.kind, o.Namespace, o.Name})
		r.rows = append(r.rows, []cell{{{text: o.Name, href: s.link(v, o)}}, {{text: s.kind}}, {{text: o.Namespace}}})
	})
	if r.forbidden = apierrors.IsForbidden(err); r.forbidden || apierrors.IsNotFound(err) {
		err = nil
	}
	return r, err
}

// showSearch searches objects by name, in the chosen namespace or in all.
func showSearch(ctx context.Context, v *visit) (templ.Component, error) {
	text := strings.ToLower(strings.TrimSpace(v.FormValue("text")))
	if text == "" {
		return nothing("Type a part of a name into the field above: of a pod, a workload, a PodDefault, a namespace, a webhook or a policy. The key / leads there from every page."), nil
	}
	kinds := searchables()
	results := make([]searchResult, len(kinds))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(maxReading)
	for i := range kinds {
		group.Go(func() (err error) {
			results[i], err = kinds[i].search(reading, v, text)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := []hit{}
	var rows [][]cell
	var forbidden []string
	for i, r := range results {
		if r.forbidden {
			forbidden = append(forbidden, kinds[i].kind)
		}
		found, rows = append(found, r.hits...), append(rows, r.rows...)
		if r.matching > maxFound {
			v.notes.WriteString("note: only the first " + number(maxFound).plain() + " objects of the kind " + kinds[i].kind + " are shown: type more of the name\n")
		}
	}
	if len(forbidden) > 0 {
		where := " in all namespaces: choose one of yours above"
		if v.chosen() != "" {
			where = " in the namespace " + v.chosen()
		}
		v.hidden = append(v.hidden, "list "+strings.Join(slices.Compact(forbidden), ", ")+where)
	}
	v.data = found
	return blocks(v, []block{{heading: "Objects", columns: []string{"Name", "Kind", "Namespace"}, rows: rows, empty: "No object that you may read has this in its name."}}), nil
}
