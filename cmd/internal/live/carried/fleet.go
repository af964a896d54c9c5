// SPDX-License-Identifier: Apache-2.0

// Package carried compares the pods of a cluster with its PodDefaults: which carry what in which revision, and which
// would be different if they were created now.
package carried

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/asked"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/exemptions"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A fleet compares the pods of a cluster, or of a namespace, with its PodDefaults. It reads only the metadata
// of pods.
type fleet struct {
	cluster    *cluster.Cluster
	notes      io.Writer
	asked      *asked.Registration
	defaults   *injection.Defaults // of the namespace; nil if there are several
	exemptions map[string][]*exempt.Exemption
	judging    *drift.Judge
	findings   map[class][]drift.Finding
	undecided  int // pods that would be refused
}

// A class is what the findings about a pod of a controller depend on.
type class struct {
	namespace, owner string
	facts            store.Facts
}

// newFleet reads the objects for a namespace, or of all namespaces if it is empty.
func newFleet(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) (*fleet, error) {
	f := &fleet{cluster: c, notes: notes, findings: map[class][]drift.Finding{}}
	return f, cluster.Together(ctx, notes,
		func(ctx context.Context, notes io.Writer) (err error) {
			switch f.asked, err = asked.Read(ctx, c); {
			case err != nil:
				return err
			case f.asked.Hidden():
				manifest.Note(notes, "note: you may not read webhook configurations: pods are compared whatever the selectors of the server's are")
			case !f.asked.Registered:
				manifest.Note(notes, "note: no webhook %s is registered: pods are compared whatever the selectors of its configuration were", poddefault.Name)
			}
			return nil
		},
		func(ctx context.Context, notes io.Writer) error {
			if namespace == "" {
				return f.readEverywhere(ctx, notes)
			}
			defaults, err := injection.Read(ctx, c, namespace, notes)
			if err != nil {
				return err
			}
			f.defaults, f.judging = defaults, drift.New(defaults.Index())
			f.exemptions = map[string][]*exempt.Exemption{namespace: defaults.Exemptions}
			return nil
		},
	)
}

// readEverywhere reads the objects of all namespaces into one index, as the server does.
func (f *fleet) readEverywhere(ctx context.Context, notes io.Writer) error {
	index := source.NewIndex()
	var rolling []*plan.Plan
	var mu sync.Mutex
	add := func(p *plan.Plan) {
		if index.Set(p); p.Rolls() != nil {
			mu.Lock()
			defer mu.Unlock()
			rolling = append(rolling, p)
		}
	}
	var stable *revision.Set
	err := cluster.Together(ctx, notes,
		func(ctx context.Context, _ io.Writer) error {
			client, err := store.Client(f.cluster.Config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
			if err != nil {
				return err
			}
			err = store.Each(ctx, store.Source(client, kubeflowv1alpha1.PodDefaultResource, &kubeflowv1alpha1.PodDefault{}), func(pd *kubeflowv1alpha1.PodDefault) {
				add(plan.Pack(pd, nil, nil))
			})
			switch {
			case apierrors.IsNotFound(err):
				return injection.ErrNoPodDefaults
			case err != nil:
				return fmt.Errorf("list PodDefaults of all namespaces: %w", err)
			}
			return nil
		},
		func(ctx context.Context, notes io.Writer) error {
			objects, _, err := f.cluster.ListIfAllowed(ctx, "ClusterPodDefaults", injection.CollectionOf(true, ""), notes)
			if err != nil {
				return err
			}
			for _, o := range objects {
				d, err := injection.New(o)
				if err != nil {
					return err
				}
				add(d.Plan)
			}
			return nil
		},
		func(ctx context.Context, notes io.Writer) error {
			namespaces, hidden, err := f.cluster.ListIfAllowed(ctx, "namespaces", "/api/v1/namespaces", notes)
			if hidden {
				manifest.Note(notes, "note: which ClusterPodDefaults are for a namespace is a guess")
			}
			for _, n := range namespaces {
				index.SetNamespace(n.Name, n.Labels)
			}
			return err
		},
		func(ctx context.Context, notes io.Writer) (err error) {
			f.exemptions, err = exemptions.Read(ctx, f.cluster, "", notes)
			for namespace, all := range f.exemptions {
				index.SetExemptions(namespace, all)
			}
			return err
		},
		func(ctx context.Context, notes io.Writer) (err error) {
			stable, err = injection.ReadStable(ctx, f.cluster, notes, "", revision.AllNamespaces)
			return err
		},
	)
	if err != nil {
		return err
	}
	for _, p := range rolling {
		p = p.With(stable)
		injection.NoteStable(p, notes)
		index.Set(p)
	}
	f.judging = drift.New(index)
	return nil
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
	judge := func(notAsked bool) ([]drift.Finding, error) {
		return f.judging.Pod(ctx, drift.Pod{Namespace: pod.Namespace, Labels: pod.Labels, Annotations: pod.Annotations, Workload: meta.WorkloadOf(pod), NotAsked: notAsked})
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
