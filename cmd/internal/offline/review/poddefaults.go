// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
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
	"github.com/sallyport-io/sallyport/cmd/internal/offline/plugins"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// podDefaults serves PodDefaults from files. In serve they come from the cluster.
type podDefaults struct {
	index      *source.Index
	namespaces map[string]bool
	cluster    bool            // there are ClusterPodDefaults
	connects   bool            // one of them selects Secrets
	secrets    bool            // there are Secrets
	hidden     bool            // no Secret is known, whatever the files have
	told       map[string]bool // namespaces that already have a note
	exempts    bool            // exemptions count
	byWorkload bool            // some are rolled out or exempted from by the name of the workload
	tolerant   bool            // invalid objects are ignored, as by the server
	refuse     bool            // one that can never work is an error, unless it comes from a cluster
}

func newPodDefaults(exempts bool) *podDefaults {
	return &podDefaults{exempts: exempts, index: source.NewIndex(), namespaces: map[string]bool{}, told: map[string]bool{}}
}

// limitSecrets makes the PodDefaults know the Secrets that a server knows by its dataConnections.
func (p *podDefaults) limitSecrets(dataConnections string) error {
	p.hidden = dataConnections == ""
	return p.index.LimitSecrets(dataConnections)
}

// load compiles the PodDefaults and ClusterPodDefaults among the objects and records the labels
// of Namespaces and Secrets. PodDefaults without a namespace get the given one. Like serve, it ignores
// invalid objects and reports them on notes. The error reports all problems.
func (p *podDefaults) load(objects []*manifest.Object, namespace string, notes io.Writer) error {
	var errs []error
	var unread []*manifest.Object
	seen := map[string]*manifest.Object{}
	exemptions := map[string][]*exempt.Exemption{}
	objects, stable, err := stableAmong(objects, notes)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GVK() == (schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) && object.Name != "" {
			p.index.SetNamespace(object.Name, labelsOfNamespace(object))
			continue
		}
		if object.GVK() == sallyportv1alpha1.Kind(sallyportv1alpha1.ExemptionKind) {
			e, err := exemptionOf(object, namespace)
			if err != nil {
				errs = append(errs, err)
			} else {
				exemptions[e.Namespace] = append(exemptions[e.Namespace], e)
			}
			continue
		}
		if object.GVK() == (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) && object.Name != "" {
			p.index.SetSecret(cmp.Or(object.Namespace, namespace), object.Name, object.Labels)
			p.secrets = true
			continue
		}
		compiled, err := compilePodDefault(object, namespace)
		switch {
		case err != nil && (object.UID != "" || p.tolerant):
			manifest.Note(notes, "warning: %v: the server ignores the object, and so does this", err)
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		}
		if compiled == nil && plugins.Reads(object.GVK()) {
			continue
		}
		if compiled == nil {
			unread = append(unread, object)
			continue
		}
		if problem := compiled.Problem(); problem != nil {
			text := fmt.Sprintf("%s can never work and is left out: %s", compiled, strings.ReplaceAll(problem.Error(), "\n", "; "))
			if p.refuse && object.UID == "" {
				errs = append(errs, object.ErrorAt("/spec", text))
			} else {
				manifest.Note(notes, "warning: %s: %s", object.At(), text)
			}
		}
		if earlier := seen[compiled.String()]; earlier != nil {
			manifest.Note(notes, "warning: %s: %s was given before, at %s: this one applies", object.At(), compiled, earlier.At())
		}
		seen[compiled.String()] = object
		if compiled = compiled.With(stable); compiled.Rolls() != nil && compiled.Record == nil && compiled.Generation() > 1 {
			manifest.Note(notes, "note: %s: %s has spec.rollout: add its revisions to --with, or the result is that of the completed rollout; kubectl get %s prints them",
				object.At(), compiled, revision.Resource(compiled.Namespace()))
		}
		p.index.Set(compiled)
		_, inProgress := compiled.RolledOut()
		p.byWorkload = p.byWorkload || inProgress
		p.connects = p.connects || compiled.Connects()
		if compiled.Cluster() {
			p.cluster = true
		} else {
			p.namespaces[compiled.Namespace()] = true
		}
	}
	for namespace, list := range exemptions {
		slices.SortFunc(list, exempt.Compare)
		if p.exempts {
			p.index.SetExemptions(namespace, list)
			p.byWorkload = true
		}
	}
	if len(exemptions) > 0 && !p.exempts {
		manifest.Note(notes, "note: there are Exemptions, and the webhook poddefault has no maxExemption in this configuration: they exempt from nothing")
	}
	if p.connects && p.hidden {
		manifest.Note(notes, "note: PodDefaults select Secrets by labels, and the webhook poddefault has no dataConnections in this configuration: a server with it leaves them out")
	} else if p.connects && !p.secrets {
		manifest.Note(notes, "note: PodDefaults select Secrets by labels, and there are none: give their metadata with --with, as kubectl get secrets -o yaml has it; data is not needed")
	}
	if len(unread) > 0 {
		first, more := unread[0], ""
		if n := len(unread) - 1; n > 0 {
			more = fmt.Sprintf("; the same goes for %d more of --with", n)
		}
		manifest.Note(notes, "note: %s: %s of %s is not read by any webhook%s", first.At(), first.Title(), first.APIVersion, more)
	}
	return errors.Join(errs...)
}

// stableAmong takes the revisions out of objects, and returns the stable ones.
func stableAmong(objects []*manifest.Object, notes io.Writer) (rest []*manifest.Object, stable *revision.Set, err error) {
	var errs []error
	stable = &revision.Set{}
	for _, object := range objects {
		if !isRevision(object) {
			rest = append(rest, object)
			continue
		}
		o := &revision.Object{}
		if err := object.Decode(o); err != nil {
			errs = append(errs, err)
			continue
		}
		one := revision.Prove(o)
		if one.Problem != nil {
			manifest.Note(notes, "warning: %s: %s is ignored: %v", object.At(), one, one.Problem)
		}
		stable.Add(one)
	}
	return rest, stable, errors.Join(errs...)
}

// isRevision reports whether an object is a revision of a PodDefault or ClusterPodDefault.
func isRevision(o *manifest.Object) bool {
	return o.GVK() == sallyportv1alpha1.Kind(sallyportv1alpha1.PodDefaultRevisionKind) || o.GVK() == sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultRevisionKind)
}

// isPodDefault reports whether an object is a PodDefault or ClusterPodDefault.
func isPodDefault(o *manifest.Object) bool {
	return o.GVK() == kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind) || o.GVK() == sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind)
}

// podDefaultsAmong returns the PodDefaults and ClusterPodDefaults among objects.
func podDefaultsAmong(objects []*manifest.Object) []*manifest.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o *manifest.Object) bool { return !isPodDefault(o) })
}

// compilePodDefault compiles an object of either kind. It returns nil for any other kind.
func compilePodDefault(object *manifest.Object, namespace string) (*plan.Plan, error) {
	nameless := func() error {
		return object.ErrorAt("/metadata", "the "+object.Kind+" has no metadata.name")
	}
	switch object.GVK() {
	case kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind):
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := object.Decode(pd); err != nil {
			return nil, err
		}
		if pd.Name == "" {
			return nil, nameless()
		}
		if pd.Namespace == "" {
			pd.Namespace = namespace
		}
		return plan.Compile(pd), nil
	case sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind):
		cpd := &sallyportv1alpha1.ClusterPodDefault{}
		if err := object.Decode(cpd); err != nil {
			return nil, err
		}
		if cpd.Name == "" {
			return nil, nameless()
		}
		return plan.CompileCluster(cpd), nil
	}
	return nil, nil
}

// exemptionOf reads an Exemption, which is of the given namespace unless it names its own.
func exemptionOf(object *manifest.Object, namespace string) (*exempt.Exemption, error) {
	from := &sallyportv1alpha1.Exemption{}
	if err := object.Decode(from); err != nil {
		return nil, err
	}
	from.Namespace = cmp.Or(from.Namespace, namespace)
	e, err := exempt.New(from)
	if err != nil {
		return nil, object.ErrorAt("/spec", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return e, nil
}

// labelsOfNamespace returns the labels of a namespace from a file, with the label that the API
// server sets on every namespace.
func labelsOfNamespace(namespace *manifest.Object) map[string]string {
	set := maps.Clone(namespace.Labels)
	if set == nil {
		set = map[string]string{}
	}
	set[corev1.LabelMetadataName] = namespace.Name
	return set
}

// explain says so if no PodDefault can match an object because all of them are in other
// namespaces: most likely --namespace is missing. It notes that once for a namespace.
func (p *podDefaults) explain(object *manifest.Object, namespace string, notes io.Writer) string {
	if len(p.namespaces) == 0 || p.cluster || p.namespaces[namespace] {
		return ""
	}
	text := fmt.Sprintf("%s is in the namespace %s, but the PodDefaults are in %s", object.Title(), namespace, strings.Join(slices.Sorted(maps.Keys(p.namespaces)), ", "))
	if !p.told[namespace] {
		p.told[namespace] = true
		manifest.Note(notes, "note: %s: %s; --namespace is that of objects which name none", object.At(), text)
	}
	return text
}

// undecided returns an error if it depends on labels of a namespace that are not known whether a
// ClusterPodDefault is applied to a pod.
func (p *podDefaults) undecided(out *Outcome) error {
	for _, c := range p.index.All("") {
		if r := out.PodDefaults.Of(c); len(r.Unknown) > 0 && r.Why != match.Exempt {
			return out.Object.ErrorAt("", fmt.Sprintf("%s: whether %s is applied is not known: it selects namespaces by %s, and the labels of the namespace %s are not given: add the Namespace to --with",
				out.Object.Title(), c, strings.Join(r.Unknown, ", "), out.Request.Namespace))
		}
	}
	return nil
}
