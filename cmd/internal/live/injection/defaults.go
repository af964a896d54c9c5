// SPDX-License-Identifier: Apache-2.0

// Package injection explains what the PodDefaults of a cluster do to pods: what they
// would change, and which apply to a pod and why.
package injection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/exemptions"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A Default is a PodDefault or ClusterPodDefault of a cluster, or a proposed one.
type Default struct {
	metav1.ObjectMeta
	Plan *plan.Plan
	Spec *kubeflowv1alpha1.PodDefaultSpec
}

// New returns the Default of an object. It ignores unknown fields, because the server
// may be newer.
func New(o *manifest.Object) (*Default, error) {
	switch o.GVK() {
	case kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind):
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := json.Unmarshal(o.Raw, pd); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", o.At(), o.Title(), err)
		}
		return &Default{ObjectMeta: pd.ObjectMeta, Plan: plan.Compile(pd), Spec: &pd.Spec}, nil
	case sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind):
		pd := &sallyportv1alpha1.ClusterPodDefault{}
		if err := json.Unmarshal(o.Raw, pd); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", o.At(), o.Title(), err)
		}
		return &Default{ObjectMeta: pd.ObjectMeta, Plan: plan.CompileCluster(pd), Spec: &pd.Spec.PodDefaultSpec}, nil
	}
	return nil, fmt.Errorf("%s: %s is neither a PodDefault nor a ClusterPodDefault", o.At(), o.Title())
}

// Defaults are the PodDefaults and ClusterPodDefaults for a namespace.
type Defaults struct {
	Labels     labels.Set // of the namespace
	All        []*Default // in order of application
	Exemptions []*exempt.Exemption

	namespace string
	secrets   map[string]labels.Set // labels of Secrets by name, if a Default selects them
	// clusterHidden is set if the user may not read ClusterPodDefaults.
	clusterHidden bool
	webhooks      []admission.Webhook // over the objects, once a pod has been sent to them
}

// ErrNoPodDefaults is returned for a cluster without the kind.
var ErrNoPodDefaults = errors.New("the cluster has no PodDefaults: install their CustomResourceDefinition, see 'sallyport manifests --part crd'")

// Read reads the Defaults of a namespace. If the user may not read ClusterPodDefaults
// or the labels of the namespace, it says so on notes.
func Read(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) (*Defaults, error) {
	out := &Defaults{namespace: namespace, Labels: labels.Set{corev1.LabelMetadataName: namespace}}
	objects, err := c.List(ctx, CollectionOf(false, namespace))
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrNoPodDefaults
	case err != nil:
		return nil, fmt.Errorf("list PodDefaults of the namespace %s: %w", namespace, err)
	}
	more, hidden, err := c.ListIfAllowed(ctx, "ClusterPodDefaults", CollectionOf(true, ""), notes)
	if err != nil {
		return nil, err
	}
	out.clusterHidden = hidden
	if err := out.add(append(more, objects...)); err != nil {
		return nil, err
	}
	// Pod security needs the labels of the namespace also where nothing is injected yet.
	if err := out.readNamespace(ctx, c, notes); err != nil {
		return nil, err
	}
	all, err := exemptions.Read(ctx, c, namespace, notes)
	if err != nil {
		return nil, err
	}
	out.Exemptions = all[namespace]
	if len(out.All) > 0 {
		if err := out.readRollouts(ctx, c, notes); err != nil {
			return nil, err
		}
	}
	return out, out.readSecrets(ctx, c, out.All, notes)
}

// readSecrets reads the labels of Secrets once, if one of the objects selects any.
func (k *Defaults) readSecrets(ctx context.Context, c *cluster.Cluster, objects []*Default, notes io.Writer) error {
	if k.secrets != nil || !slices.ContainsFunc(objects, func(d *Default) bool { return d.Plan.Connects() }) {
		return nil
	}
	k.secrets = map[string]labels.Set{}
	err := c.EachMetadata(ctx, "/api/v1/namespaces/"+k.namespace+"/secrets", "", func(meta *metav1.ObjectMeta) { k.secrets[meta.Name] = meta.Labels })
	switch {
	case apierrors.IsForbidden(err):
		manifest.Note(notes, "note: you may not list Secrets in the namespace %s: those that PodDefaults select by labels are left out", k.namespace)
	case err != nil:
		return fmt.Errorf("list Secrets of the namespace %s: %w", k.namespace, err)
	}
	return nil
}

// add adds the Defaults of objects.
func (k *Defaults) add(objects []*manifest.Object) error {
	for _, o := range objects {
		d, err := New(o)
		if err != nil {
			return err
		}
		k.All = append(k.All, d)
	}
	k.sort()
	return nil
}

// readNamespace reads the labels of the namespace.
func (k *Defaults) readNamespace(ctx context.Context, c *cluster.Cluster, notes io.Writer) error {
	namespace, err := c.ReadNamespace(ctx, k.namespace)
	switch {
	case apierrors.IsForbidden(err):
		manifest.Note(notes, "note: you may not read the namespace %s: which ClusterPodDefaults are for it is a guess, and its pod security is not known", k.namespace)
		return nil
	case err != nil:
		return err
	case namespace.Labels != nil:
		k.Labels = namespace.Labels
	}
	return nil
}

// sort sorts them in order of application.
func (k *Defaults) sort() {
	slices.SortStableFunc(k.All, func(a, b *Default) int { return plan.InOrder(a.Plan, b.Plan) })
}

// with returns the Defaults with d added or replaced.
func (k *Defaults) with(d *Default) *Defaults {
	out := k.without(d)
	out.All = append(out.All, d)
	out.sort()
	return out
}

// without returns the Defaults without the one named like d.
func (k *Defaults) without(d *Default) *Defaults {
	out := &Defaults{namespace: k.namespace, Labels: k.Labels, secrets: k.secrets, Exemptions: k.Exemptions}
	for _, other := range k.All {
		if !same(other, d) {
			out.All = append(out.All, other)
		}
	}
	return out
}

func same(a, b *Default) bool { return a.Plan.String() == b.Plan.String() }

// Index returns the webhook's source.
func (k *Defaults) Index() *source.Index {
	index := source.NewIndex()
	index.SetNamespace(k.namespace, k.Labels)
	index.SetExemptions(k.namespace, k.Exemptions)
	for name, set := range k.secrets {
		index.SetSecret(k.namespace, name, set)
	}
	for _, d := range k.All {
		index.Set(d.Plan)
	}
	return index
}
