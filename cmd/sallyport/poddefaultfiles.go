// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

// podDefaultFiles are PodDefaults from files, where serve has those of a cluster.
type podDefaultFiles struct {
	index      *poddefault.Index
	namespaces map[string]bool
	cluster    bool            // there are ClusterPodDefaults
	told       map[string]bool // namespaces that a note was written about
}

func newPodDefaultFiles() *podDefaultFiles {
	return &podDefaultFiles{index: poddefault.NewIndex(), namespaces: map[string]bool{}, told: map[string]bool{}}
}

// load compiles the PodDefaults and ClusterPodDefaults among the objects, and notes the
// labels of Namespaces; PodDefaults that name no namespace are of the given one. What
// can never work is told of on notes, and left out as serve leaves it out. The error
// has every mistake.
func (p *podDefaultFiles) load(objects []*object, namespace string, notes io.Writer) error {
	var errs []error
	var unread []*object
	seen := map[string]*object{}
	for _, object := range objects {
		if object.gvk() == (schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) && object.Name != "" {
			p.index.SetNamespace(object.Name, labelsOfNamespace(object))
			continue
		}
		compiled, err := compilePodDefault(object, namespace)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if compiled == nil {
			unread = append(unread, object)
			continue
		}
		if problem := compiled.Problem(); problem != nil {
			note(notes, "warning: %s: %s can never work and is left out: %s",
				object.at(), compiled, strings.ReplaceAll(problem.Error(), "\n", "; "))
		}
		if earlier := seen[compiled.String()]; earlier != nil {
			note(notes, "warning: %s: %s was given before, at %s: this one counts", object.at(), compiled, earlier.at())
		}
		seen[compiled.String()] = object
		p.index.Set(compiled)
		if compiled.Cluster() {
			p.cluster = true
		} else {
			p.namespaces[compiled.Namespace()] = true
		}
	}
	if len(unread) > 0 {
		first, more := unread[0], ""
		if n := len(unread) - 1; n > 0 {
			more = fmt.Sprintf("; the same goes for %d more of --with", n)
		}
		note(notes, "note: %s: %s of %s is not read by any webhook%s", first.at(), first.title(), first.APIVersion, more)
	}
	return errors.Join(errs...)
}

// isPodDefault tells whether an object is a PodDefault or ClusterPodDefault.
func isPodDefault(o *object) bool {
	return o.gvk() == kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind) || o.gvk() == sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind)
}

// podDefaultsAmong are those among objects.
func podDefaultsAmong(objects []*object) []*object {
	return slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return !isPodDefault(o) })
}

// compilePodDefault compiles an object of either kind; nil if it is of another one.
func compilePodDefault(object *object, namespace string) (*poddefault.Compiled, error) {
	nameless := func() error {
		return object.document.errorAt(object.pointer+"/metadata", "the "+object.Kind+" has no metadata.name")
	}
	switch object.gvk() {
	case kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind):
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := decode(object.document, object.pointer, object.raw, pd); err != nil {
			return nil, err
		}
		if pd.Name == "" {
			return nil, nameless()
		}
		if pd.Namespace == "" {
			pd.Namespace = namespace
		}
		return poddefault.Compile(pd), nil
	case sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind):
		cpd := &sallyportv1alpha1.ClusterPodDefault{}
		if err := decode(object.document, object.pointer, object.raw, cpd); err != nil {
			return nil, err
		}
		if cpd.Name == "" {
			return nil, nameless()
		}
		return poddefault.CompileCluster(cpd), nil
	}
	return nil, nil
}

// labelsOfNamespace are those of a namespace from a file, and the one that the API
// server gives to each.
func labelsOfNamespace(namespace *object) map[string]string {
	set := maps.Clone(namespace.Labels)
	if set == nil {
		set = map[string]string{}
	}
	set[corev1.LabelMetadataName] = namespace.Name
	return set
}

// explain tells if an object cannot be matched because all PodDefaults are in other
// namespaces: most likely --namespace was forgotten.
func (p *podDefaultFiles) explain(object *object, namespace string, notes io.Writer) {
	if len(p.namespaces) == 0 || p.cluster || p.namespaces[namespace] || p.told[namespace] {
		return
	}
	p.told[namespace] = true
	note(notes, "note: %s: %s is in the namespace %s, but the PodDefaults are in %s; --namespace is that of objects which name none",
		object.at(), object.title(), namespace, strings.Join(slices.Sorted(maps.Keys(p.namespaces)), ", "))
}

// note writes a line for people beside the output.
func note(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintln(out, printable(fmt.Sprintf(format, args...)))
}
