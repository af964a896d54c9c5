// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// maxEntryBytes is the JSON that an object may take in an index. One that takes more
// would crowd out others.
const maxEntryBytes = 16 << 10

// clusterPrefix is that of ClusterPodDefaults in [poddefault.DecisionsAnnotation].
const clusterPrefix = "cluster/"

// Entry is what an index has to know of an object that injects. It never changes.
type Entry struct {
	decision     string // its name in [poddefault.DecisionsAnnotation]
	version      string // see [poddefault.Compiled.Version]
	requirements []metav1.LabelSelectorRequirement
	namespaces   labels.Selector // of a ClusterPodDefault
	size         int             // of the JSON, at most
}

// FromPodDefault returns nil for an object that changes no pod: one that can never
// work, or is in mode Audit. Nothing is lost if a pod passes without it.
func FromPodDefault(pd *kubeflowv1alpha1.PodDefault) *Entry {
	compiled := poddefault.Compile(pd)
	if compiled.Problem() != nil {
		return nil
	}
	return newEntry(pd.Name, compiled.Version(), &pd.Spec)
}

// FromClusterPodDefault is [FromPodDefault] for the other kind.
func FromClusterPodDefault(cpd *sallyportv1alpha1.ClusterPodDefault) *Entry {
	compiled := poddefault.CompileCluster(cpd)
	if compiled.Problem() != nil {
		return nil
	}
	e := newEntry(clusterPrefix+cpd.Name, compiled.Version(), &cpd.Spec.PodDefaultSpec)
	if e == nil {
		return nil
	}
	e.namespaces = labels.Everything()
	if selector := cpd.Spec.NamespaceSelector; selector != nil {
		var err error
		if e.namespaces, err = metav1.LabelSelectorAsSelector(selector); err != nil {
			return nil
		}
	}
	return e
}

func newEntry(decision, version string, spec *kubeflowv1alpha1.PodDefaultSpec) *Entry {
	if spec.Mode == kubeflowv1alpha1.ModeAudit {
		return nil
	}
	e := &Entry{decision: decision, version: version, requirements: requirements(&spec.Selector)}
	text := len(e.text(-1))
	e.size = text + len(`"",`)
	for _, r := range e.requirements {
		n := 0
		for _, term := range terms(r) {
			n += len(";:,") + len(term) + text
		}
		e.size = max(e.size, n)
	}
	return e
}

// requirements are the terms of a selector in the order of their keys; the values are
// sorted.
func requirements(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	var out []metav1.LabelSelectorRequirement
	for key, value := range selector.MatchLabels {
		out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	for _, e := range selector.MatchExpressions {
		values := slices.Clone(e.Values)
		slices.Sort(values)
		out = append(out, metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: slices.Compact(values)})
	}
	slices.SortFunc(out, func(a, b metav1.LabelSelectorRequirement) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		if c := strings.Compare(string(a.Operator), string(b.Operator)); c != 0 {
			return c
		}
		return slices.Compare(a.Values, b.Values)
	})
	return out
}

// selects tells whether an object is for the pods of a namespace with these labels.
func (e *Entry) selects(namespace labels.Set) bool {
	return e.namespaces == nil || e.namespaces.Matches(namespace)
}
