// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/replay/review"
	"github.com/sallyport-io/sallyport/internal/workload"
)

// Kinds returns the kinds that can be previewed by name.
func Kinds() []Kind { return kinds }

// A Kind is that of PodDefaults or ClusterPodDefaults.
type Kind struct {
	// Words name the kind in arguments; the first is for messages.
	Words []string
	// Path is the path of the collection.
	Path func(namespace string) string
}

// newVersion is the resourceVersion of an object that is not in the cluster yet.
const newVersion = "new"

var kinds = []Kind{
	{[]string{"poddefault", "poddefaults"}, func(namespace string) string {
		return "/apis/" + kubeflowv1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + kubeflowv1alpha1.PodDefaultResource
	}},
	{[]string{"clusterpoddefault", "clusterpoddefaults"}, func(string) string {
		return "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/" + sallyportv1alpha1.ClusterPodDefaultResource
	}},
}

// A Preview compares the pods of workloads before and after a change.
type Preview struct {
	*Trial
	Out   io.Writer
	Color bool
	// Names prints only which workloads would change.
	Names bool
	// Everywhere previews a ClusterPodDefault in all namespaces that it selects, not
	// only in the cluster's namespace.
	Everywhere bool
}

// Files previews objects of files as if they were in the cluster. It reports whether a
// pod would newly be denied, or one of the objects itself.
func (p Preview) Files(ctx context.Context, objects []*manifest.Object) (denied bool, err error) {
	given, err := p.prepare(ctx, objects)
	if err != nil {
		return false, err
	}
	for _, object := range objects {
		result, err := p.try(ctx, object, &Defaults{namespace: p.Cluster.Namespace})
		if err != nil {
			return false, err
		}
		if result.Denied != nil {
			denied = true
			manifest.Note(p.Notes, "denied: %s: it would be refused when it is written: %s", object.Title(), strings.ReplaceAll(result.Denied.Message, "\n", "; "))
		}
	}
	if denied {
		return true, nil
	}
	return p.run(ctx, given, func(now *Defaults, d *Default) (before, after *Defaults) { return now, now.with(d) })
}

// Named previews an object of the cluster: its effect or, with remove, the effect of
// deleting it.
func (p Preview) Named(ctx context.Context, args []string, remove bool) (denied bool, err error) {
	object, err := defaultNamed(ctx, p.Cluster, args)
	if err != nil {
		return false, err
	}
	given, err := p.prepare(ctx, []*manifest.Object{object})
	if err != nil {
		return false, err
	}
	return p.run(ctx, given, func(now *Defaults, d *Default) (before, after *Defaults) {
		if remove {
			return now, now.without(d)
		}
		return now.without(d), now
	})
}

// prepare sets missing namespaces and versions.
func (p Preview) prepare(ctx context.Context, objects []*manifest.Object) ([]*Default, error) {
	var out []*Default
	for i, object := range objects {
		var err error
		if object.Namespace == "" && object.Kind == kubeflowv1alpha1.PodDefaultKind {
			if object, err = inNamespace(object, p.Cluster.Namespace); err != nil {
				return nil, err
			}
		}
		if object.ResourceVersion == "" {
			if object, err = asVersion(ctx, p.Cluster, object); err != nil {
				return nil, err
			}
		}
		objects[i] = object
		d, err := New(object)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func defaultNamed(ctx context.Context, c *cluster.Cluster, args []string) (*manifest.Object, error) {
	word, name, err := cluster.ParseNamed(args)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if slices.Contains(kind.Words, strings.ToLower(word)) {
			return c.GetNamed(ctx, kind.Path(c.Namespace), kind.Words[0], name)
		}
	}
	return nil, fmt.Errorf("type %q: choose poddefault or clusterpoddefault", word)
}

// inNamespace returns the object with a namespace.
func inNamespace(o *manifest.Object, namespace string) (*manifest.Object, error) {
	return o.EditMetadata(func(meta map[string]any) { meta["namespace"] = namespace })
}

// asVersion gives an object the resourceVersion of the existing one, because that
// difference is irrelevant.
func asVersion(ctx context.Context, c *cluster.Cluster, o *manifest.Object) (*manifest.Object, error) {
	version := newVersion
	for _, kind := range kinds {
		if kind.Words[0] != strings.ToLower(o.Kind) {
			continue
		}
		there, err := c.Get(ctx, kind.Path(o.Namespace)+"/"+o.Name)
		switch {
		case err == nil:
			version = there.ResourceVersion
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return nil, err
		}
	}
	return o.EditMetadata(func(meta map[string]any) { meta["resourceVersion"] = version })
}

// run shows the effect of the objects, one namespace after the other.
func (p Preview) run(ctx context.Context, given []*Default, compare func(now *Defaults, d *Default) (before, after *Defaults)) (denied bool, err error) {
	namespaces, err := p.namespaces(ctx, given)
	if err != nil {
		return false, err
	}
	printer := previewPrinter{out: p.Out, color: p.Color, names: p.Names}
	for _, namespace := range namespaces {
		if err := p.namespace(ctx, namespace, given, compare, &printer); err != nil {
			return false, err
		}
	}
	return printer.summary()
}

// namespaces returns the namespaces where the given objects may apply. A
// ClusterPodDefault is previewed in the namespace of --namespace, or everywhere.
func (p Preview) namespaces(ctx context.Context, given []*Default) ([]string, error) {
	set := map[string]bool{}
	for _, d := range given {
		if d.namespaces == nil {
			set[d.Namespace] = true
			continue
		}
		if !p.Everywhere {
			set[p.Cluster.Namespace] = true
			continue
		}
		all, err := p.Cluster.List(ctx, "/api/v1/namespaces")
		if apierrors.IsForbidden(err) {
			manifest.Note(p.Notes, "note: you may not list namespaces: %s is looked at in %s alone", d.compiled, p.Cluster.Namespace)
			set[p.Cluster.Namespace] = true
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		for _, namespace := range all {
			if d.namespaces.Matches(labels.Set(namespace.Labels)) {
				set[namespace.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func (p Preview) namespace(ctx context.Context, namespace string, given []*Default, compare func(now *Defaults, d *Default) (before, after *Defaults), printer *previewPrinter) error {
	now, err := Read(ctx, p.Cluster, namespace, p.Notes)
	if err != nil {
		return err
	}
	before, after := now, now
	for _, d := range given {
		if d.namespaces == nil && d.Namespace != namespace {
			continue
		}
		was, _ := compare(before, d)
		_, is := compare(after, d)
		before, after = was, is
	}
	workloads, unseen, err := p.Cluster.Workloads(ctx, namespace, p.Notes)
	if err != nil {
		return err
	}
	for _, what := range unseen {
		printer.unseen = append(printer.unseen, what+" of "+namespace)
	}
	for _, of := range workloads {
		pods, err := workload.PodsOf(of, namespace, p.Cluster.Find(ctx))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			was, err := p.try(ctx, pod.Object, before)
			if err != nil {
				return err
			}
			is, err := p.try(ctx, pod.Object, after)
			if err != nil {
				return err
			}
			if err := printer.print(of, was, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// previewPrinter prints workloads whose pods change.
type previewPrinter struct {
	out                             io.Writer
	color, names                    bool
	looked, changed, denied, spared int
	unseen                          []string
}

func (p *previewPrinter) print(workload *manifest.Object, was, is *review.Outcome) error {
	p.looked++
	title := workload.Title()
	var text string
	switch {
	case is.Denied != nil && was.Denied == nil:
		p.denied++
		text = fmt.Sprintf("%s: would be denied: %s\n", title, manifest.Printable(is.Denied.Message))
	case is.Denied != nil: // denied before too
		if is.Denied.Message != was.Denied.Message {
			text = fmt.Sprintf("%s: is denied, for another reason then: %s\n", title, manifest.Printable(is.Denied.Message))
		}
	case was.Denied != nil:
		p.spared++
		text = title + ": is denied now, and would be admitted\n"
	case string(was.After) != string(is.After):
		p.changed++
		if p.names {
			text = title + ": would change\n"
			break
		}
		result := *is.Result
		result.Before = was.After
		shown := review.Outcome{Result: &result, Object: workload, Verdict: "would change", OriginsBefore: was.Origins()}
		var err error
		if text, err = review.Diff(&shown, p.color); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	_, err := io.WriteString(p.out, text)
	return err
}

// summary ends the output and returns the result.
func (p *previewPrinter) summary() (denied bool, err error) {
	_, err = fmt.Fprintf(p.out, "%d of %d workloads would change, %d would be denied, %d would be denied no more\n", p.changed, p.looked, p.denied, p.spared)
	switch {
	case err != nil:
		return false, err
	case p.denied > 0:
		return true, nil
	case len(p.unseen) > 0:
		return false, fmt.Errorf("not all was looked at: you may not list %s; ask somebody who may", strings.Join(p.unseen, ", "))
	}
	return false, nil
}
