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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// A Preview compares the pods of workloads before and after a change.
type Preview struct {
	*Simulator
	// Show receives each pod that changes.
	Show func(*Change) error
	// Everywhere previews a ClusterPodDefault in all namespaces that it selects, not
	// only in the cluster's namespace.
	Everywhere bool
}

// A Change is the effect on a pod that a workload creates.
type Change struct {
	Workload *manifest.Object
	// Was is the outcome before the change, and Is the one after it.
	Was, Is *review.Outcome

	controller metav1.OwnerReference // creates the pod
}

// Verdict returns the effect in words, or "" if there is none.
func (c *Change) Verdict() string {
	was, is := c.Was.Denied, c.Is.Denied
	switch {
	case is != nil && was == nil:
		return "would be denied: " + is.Message
	case is != nil && is.Message != was.Message:
		return "is denied, for another reason then: " + is.Message
	case is != nil:
		return ""
	case was != nil:
		return c.Is.AsFarAsKnown("is denied now, and would be admitted")
	case c.Changes():
		return c.Is.AsFarAsKnown("would change")
	}
	return ""
}

// Changes reports whether the pod is admitted before and after, and differs.
func (c *Change) Changes() bool {
	return c.Was.Denied == nil && c.Is.Denied == nil && string(c.Was.After) != string(c.Is.After)
}

// Outcome returns the difference as an outcome.
func (c *Change) Outcome() *review.Outcome {
	result := *c.Is.Result
	result.Before = c.Was.After
	return &review.Outcome{Result: &result, Object: c.Workload, Verdict: c.Verdict(), OriginsBefore: c.Was.Origins()}
}

// An Effect sums up a preview.
type Effect struct {
	// Refused is set if an object itself would be refused. Nothing else is set then.
	Refused bool
	// Looked counts workloads, Changed those with other pods, and Denied and Spared those
	// whose pods would newly be denied, or be denied no more. Unknown counts those of which it is not known whether
	// the API server accepts their pods.
	Looked, Changed, Denied, Spared, Unknown int
	// Unseen are kinds in namespaces that the user may not list.
	Unseen []string
	// Objects are those that are previewed, where they are in the cluster after the change.
	Objects []*Previewed
}

// Files previews objects of files as if they were in the cluster.
func (p Preview) Files(ctx context.Context, objects []*manifest.Object) (*Effect, error) {
	given, err := p.prepare(ctx, objects)
	if err != nil {
		return nil, err
	}
	refused := false
	for _, object := range objects {
		result, err := p.try(ctx, object, &Defaults{namespace: p.Cluster.Namespace})
		if err != nil {
			return nil, err
		}
		if result.Denied != nil {
			refused = true
			manifest.Note(p.Notes, "denied: %s: it would be refused when it is written: %s", object.Title(), strings.ReplaceAll(result.Denied.Message, "\n", "; "))
		}
	}
	if refused {
		return &Effect{Refused: true}, nil
	}
	return p.run(ctx, given, func(now *Defaults, d *Default) (before, after *Defaults) { return now, now.with(d) })
}

// Named previews an object of the cluster: its effect or, with remove, the effect of
// deleting it.
func (p Preview) Named(ctx context.Context, args []string, remove bool) (*Effect, error) {
	object, err := Named(ctx, p.Cluster, args)
	if err != nil {
		return nil, err
	}
	given, err := p.prepare(ctx, []*manifest.Object{object})
	if err != nil {
		return nil, err
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
		if d.UID != "" && d.Plan.Rolls() != nil {
			set, err := ReadStable(ctx, p.Cluster, p.Notes, d.Namespace)
			if err != nil {
				return nil, err
			}
			d.Plan = d.Plan.With(set)
		}
		out = append(out, d)
	}
	return out, nil
}

// inNamespace returns the object with a namespace.
func inNamespace(o *manifest.Object, namespace string) (*manifest.Object, error) {
	return o.EditMetadata(func(meta map[string]any) { meta["namespace"] = namespace })
}

// asVersion gives an object the resourceVersion of the existing one, because that
// difference is irrelevant.
func asVersion(ctx context.Context, c *cluster.Cluster, o *manifest.Object) (*manifest.Object, error) {
	version := newVersion
	if kind := kindOf(o.Kind); kind != nil {
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
func (p Preview) run(ctx context.Context, given []*Default, compare func(now *Defaults, d *Default) (before, after *Defaults)) (*Effect, error) {
	namespaces, err := p.namespaces(ctx, given)
	if err != nil {
		return nil, err
	}
	effect := &Effect{}
	for _, namespace := range namespaces {
		if err := p.namespace(ctx, namespace, given, compare, effect); err != nil {
			return nil, err
		}
	}
	for _, object := range effect.Objects {
		object.end()
	}
	return effect, nil
}

// namespaces returns the namespaces where the given objects may apply. A
// ClusterPodDefault is previewed in the namespace of --namespace, or everywhere.
func (p Preview) namespaces(ctx context.Context, given []*Default) ([]string, error) {
	set := map[string]bool{}
	for _, d := range given {
		if !d.Plan.Cluster() {
			set[d.Namespace] = true
			continue
		}
		if !p.Everywhere {
			set[p.Cluster.Namespace] = true
			continue
		}
		all, err := p.Cluster.List(ctx, "/api/v1/namespaces")
		if apierrors.IsForbidden(err) {
			manifest.Note(p.Notes, "note: you may not list namespaces: %s is looked at in %s alone", d.Plan, p.Cluster.Namespace)
			set[p.Cluster.Namespace] = true
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		for _, namespace := range all {
			if d.Plan.SelectsNamespace(namespace.Labels) {
				set[namespace.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func (p Preview) namespace(ctx context.Context, namespace string, given []*Default, compare func(now *Defaults, d *Default) (before, after *Defaults), effect *Effect) error {
	now, err := Read(ctx, p.Cluster, namespace, p.Notes)
	if err != nil {
		return err
	}
	if err := now.readSecrets(ctx, p.Cluster, given, p.Notes); err != nil {
		return err
	}
	before, after := now, now
	for _, d := range given {
		if !d.Plan.Cluster() && d.Namespace != namespace {
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
		effect.Unseen = append(effect.Unseen, what+" of "+namespace)
	}
	var changes []*Change
	for _, of := range workloads {
		pods, err := workload.PodsOf(of, namespace, p.Cluster.Find(ctx))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if err := ctx.Err(); err != nil {
				return err
			}
			sent, err := now.owned(pod)
			if err != nil {
				return err
			}
			was, err := p.try(ctx, sent, before)
			if err != nil {
				return err
			}
			is, err := p.try(ctx, sent, after)
			if err != nil {
				return err
			}
			effect.Looked++
			effect.decided(of, given, after, is)
			if change := (&Change{Workload: of, Was: was, Is: is, controller: pod.Controller}); change.Verdict() != "" {
				changes = append(changes, change)
			}
		}
	}
	if err := p.askServer(ctx, now, changes); err != nil {
		return err
	}
	for _, change := range changes {
		effect.add(change)
		if err := p.Show(change); err != nil {
			return err
		}
	}
	return nil
}

func (e *Effect) add(c *Change) {
	if c.Is.Unanswered != "" {
		e.Unknown++
	}
	switch was, is := c.Was.Denied, c.Is.Denied; {
	case c.Changes():
		e.Changed++
	case was == nil && is != nil:
		e.Denied++
	case was != nil && is == nil:
		e.Spared++
	}
}

// A PreviewPrinter prints a preview as text.
type PreviewPrinter struct {
	Out   io.Writer
	Color bool
	// Names prints only which workloads would change.
	Names bool
}

// Print prints a change.
func (p PreviewPrinter) Print(c *Change) error {
	text := manifest.Sprintf("%s: %s\n", c.Workload.Title(), c.Verdict())
	if c.Changes() && !p.Names {
		var err error
		if text, err = review.Diff(c.Outcome(), p.Color); err != nil {
			return err
		}
	}
	_, err := io.WriteString(p.Out, text)
	return err
}

// End prints the summary, and reports whether an object, or a pod that is admitted now,
// would be denied. The error lists what was not looked at.
func (p PreviewPrinter) End(e *Effect) (denied bool, err error) {
	if e.Refused {
		return true, nil
	}
	_, err = fmt.Fprintf(p.Out, "%d of %d workloads would change, %d would be denied, %d would be denied no more\n", e.Changed, e.Looked, e.Denied, e.Spared)
	for _, object := range e.Objects {
		if err == nil && !p.Names {
			err = object.print(p.Out)
		}
	}
	switch {
	case err != nil:
		return false, err
	case e.Denied > 0:
		return true, nil
	case e.Unknown > 0:
		return false, ErrUnknown(e.Unknown)
	case len(e.Unseen) > 0:
		return false, fmt.Errorf("incomplete: you may not list %s; run it again with a kubeconfig that has the permission", strings.Join(e.Unseen, ", "))
	}
	return false, nil
}
