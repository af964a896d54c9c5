// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/asked"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/exemptions"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A fleet compares the pods of a cluster with its PodDefaults. It reads only the metadata
// of pods.
type fleet struct {
	cluster   *cluster.Cluster
	notes     io.Writer
	asked     *asked.Registration
	all       *everywhere // nil if namespaces are read one by one
	known     map[string]*judged
	findings  map[class][]drift.Finding
	undecided int // pods that would be refused
}

// judged are the objects of a namespace.
type judged struct {
	*Defaults
	judge *drift.Judge
}

// everywhere are the objects of all namespaces, and what these have.
type everywhere struct {
	podDefaults map[string][]*manifest.Object
	cluster     []*manifest.Object
	hidden      bool // the user may not read ClusterPodDefaults
	labels      map[string]labels.Set
	exemptions  map[string][]*exempt.Exemption
	stable      *revision.Set
	notes       io.Writer
}

// A class is what the findings about a pod of a controller depend on.
type class struct {
	namespace, owner string
	facts            store.Facts
}

// newFleet reads the objects of all namespaces if namespace is empty.
func newFleet(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) (*fleet, error) {
	f := &fleet{cluster: c, notes: notes, known: map[string]*judged{}, findings: map[class][]drift.Finding{}}
	var err error
	switch f.asked, err = asked.Read(ctx, c); {
	case err != nil:
		return nil, err
	case f.asked.Hidden():
		manifest.Note(notes, "note: you may not read webhook configurations: pods are compared whatever the selectors of the server's are")
	case !f.asked.Registered:
		manifest.Note(notes, "note: no webhook %s is registered: pods are compared whatever the selectors of its configuration were", poddefault.Name)
	}
	if namespace == "" {
		f.all, err = readEverywhere(ctx, c, notes)
	}
	return f, err
}

func readEverywhere(ctx context.Context, c *cluster.Cluster, notes io.Writer) (*everywhere, error) {
	out := &everywhere{podDefaults: map[string][]*manifest.Object{}, labels: map[string]labels.Set{}, notes: notes}
	err := cluster.Together(ctx, notes,
		func(ctx context.Context, _ io.Writer) error {
			objects, err := c.List(ctx, CollectionOf(false, ""))
			switch {
			case apierrors.IsNotFound(err):
				return ErrNoPodDefaults
			case err != nil:
				return fmt.Errorf("list PodDefaults of all namespaces: %w", err)
			}
			for _, o := range objects {
				out.podDefaults[o.Namespace] = append(out.podDefaults[o.Namespace], o)
			}
			return nil
		},
		func(ctx context.Context, notes io.Writer) (err error) {
			out.cluster, out.hidden, err = c.ListIfAllowed(ctx, "ClusterPodDefaults", CollectionOf(true, ""), notes)
			return err
		},
		func(ctx context.Context, notes io.Writer) error {
			namespaces, hidden, err := c.ListIfAllowed(ctx, "namespaces", "/api/v1/namespaces", notes)
			if hidden {
				manifest.Note(notes, "note: which ClusterPodDefaults are for a namespace is a guess")
			}
			for _, n := range namespaces {
				out.labels[n.Name] = n.Labels
			}
			return err
		},
		func(ctx context.Context, notes io.Writer) (err error) {
			out.exemptions, err = exemptions.Read(ctx, c, "", notes)
			return err
		},
		func(ctx context.Context, notes io.Writer) (err error) {
			out.stable, err = readStable(ctx, c, notes, "", revision.AllNamespaces)
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// of returns the Defaults of a namespace.
func (all *everywhere) of(namespace string) (*Defaults, error) {
	out := &Defaults{namespace: namespace, labels: all.labels[namespace], exemptions: all.exemptions[namespace], clusterHidden: all.hidden}
	if out.labels == nil {
		out.labels = labels.Set{corev1.LabelMetadataName: namespace}
	}
	if err := out.add(slices.Concat(all.cluster, all.podDefaults[namespace])); err != nil {
		return nil, err
	}
	out.rollOut(all.stable, all.notes)
	return out, nil
}

// in returns the objects of a namespace.
func (f *fleet) in(ctx context.Context, namespace string) (*judged, error) {
	if known := f.known[namespace]; known != nil {
		return known, nil
	}
	var defaults *Defaults
	var err error
	if f.all != nil {
		defaults, err = f.all.of(namespace)
	} else {
		defaults, err = Read(ctx, f.cluster, namespace, f.notes)
	}
	if err != nil {
		return nil, err
	}
	out := &judged{Defaults: defaults, judge: drift.New(defaults.index())}
	f.known[namespace] = out
	return out, nil
}

// judge returns the findings about a pod.
func (f *fleet) judge(ctx context.Context, pod *metav1.ObjectMeta) ([]drift.Finding, error) {
	var one class
	owner := metav1.GetControllerOf(pod)
	if owner != nil { // no other pod is like one without
		one = class{pod.Namespace, string(owner.UID), store.NewFacts(pod.Labels, pod.Annotations)}
	}
	if found, known := f.findings[one]; known {
		return drift.At(pod.CreationTimestamp.Time, pod.Annotations, found), nil
	}
	here, err := f.in(ctx, pod.Namespace)
	if err != nil {
		return nil, err
	}
	judge := func(notAsked bool) ([]drift.Finding, error) {
		return here.judge.Pod(ctx, drift.Pod{Namespace: pod.Namespace, Labels: pod.Labels, Annotations: pod.Annotations, Workload: meta.WorkloadOf(pod), NotAsked: notAsked})
	}
	found, err := judge(false)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		manifest.Note(f.notes, "note: pod %s/%s is left out, because it would be refused: %v", pod.Namespace, pod.Name, err)
		f.undecided++
		return nil, nil
	}
	if len(found) > 0 { // otherwise nobody needs to know
		is, err := f.asked.About(ctx, pod)
		if err == nil && !is {
			found, err = judge(true)
		}
		if err != nil {
			return nil, err
		}
	}
	if owner != nil {
		f.findings[one] = found
	}
	return drift.At(pod.CreationTimestamp.Time, pod.Annotations, found), nil
}

// each visits the metadata of all objects of a collection, until visit fails.
func (f *fleet) each(ctx context.Context, path, fields string, visit func(*metav1.ObjectMeta) error) error {
	var failed error
	err := f.cluster.EachMetadata(ctx, path, fields, func(object *metav1.ObjectMeta) {
		if failed == nil {
			failed = visit(object)
		}
	})
	return errors.Join(err, failed)
}

// eachPod visits the pods of a namespace, or of all if it is empty.
func (f *fleet) eachPod(ctx context.Context, namespace, fields string, visit func(*metav1.ObjectMeta) error) error {
	if err := f.each(ctx, workload.Kinds()[0].Path(namespace), fields, visit); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	return nil
}

// compareNames orders objects by namespace and name.
func compareNames(aNamespace, aName, bNamespace, bName string) int {
	return cmp.Or(strings.Compare(aNamespace, bNamespace), strings.Compare(aName, bName))
}
