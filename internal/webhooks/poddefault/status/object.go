// SPDX-License-Identifier: Apache-2.0

package status

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// A key names an object: a PodDefault, or a ClusterPodDefault if the namespace is
// empty.
type key struct{ namespace, name string }

// String is how messages name the object.
func (k key) String() string {
	if k.namespace == "" {
		return "ClusterPodDefault " + k.name
	}
	return "PodDefault " + k.namespace + "/" + k.name
}

func compareKeys(a, b key) int {
	if c := strings.Compare(a.namespace, b.namespace); c != 0 {
		return c
	}
	return strings.Compare(a.name, b.name)
}

// object is what the controller keeps of one.
type object struct {
	key
	uid             types.UID
	resourceVersion string
	generation      int64
	spec            *kubeflowv1alpha1.PodDefaultSpec
	status          kubeflowv1alpha1.PodDefaultStatus
	// digest is that of the spec, to tell whether it has changed.
	digest [sha256.Size]byte
	// namespaces selects those for which a ClusterPodDefault is; nil for a PodDefault.
	namespaces labels.Selector
	claims     []claim // in the order of their places
	required   []requirement
	compiled   *poddefault.Compiled
}

func fromPodDefault(pd *kubeflowv1alpha1.PodDefault) *object {
	o := newObject(&pd.ObjectMeta, &pd.Spec, &pd.Status)
	o.digest = digest(&pd.Spec)
	o.compiled = poddefault.Compile(pd)
	return o
}

func fromClusterPodDefault(pd *sallyportv1alpha1.ClusterPodDefault) *object {
	o := newObject(&pd.ObjectMeta, &pd.Spec.PodDefaultSpec, &pd.Status)
	o.digest = digest(&pd.Spec)
	o.compiled = poddefault.CompileCluster(pd)
	o.namespaces = labels.Everything()
	if pd.Spec.NamespaceSelector != nil {
		var err error
		if o.namespaces, err = metav1.LabelSelectorAsSelector(pd.Spec.NamespaceSelector); err != nil {
			o.namespaces = labels.Nothing()
		}
	}
	return o
}

// newObject copies what is kept: managed fields may be larger than all the rest.
func newObject(meta *metav1.ObjectMeta, spec *kubeflowv1alpha1.PodDefaultSpec, status *kubeflowv1alpha1.PodDefaultStatus) *object {
	own := *spec
	return &object{
		key: key{meta.Namespace, meta.Name}, uid: meta.UID, resourceVersion: meta.ResourceVersion, generation: meta.Generation,
		spec: &own, status: *status, claims: claims(spec), required: required(&own.Selector),
	}
}

func digest(spec any) [sha256.Size]byte {
	out, _ := json.Marshal(spec) // what was decoded from JSON can be encoded
	return sha256.Sum256(out)
}

// sameSpec tells whether nothing has changed that conditions are about.
func (o *object) sameSpec(other *object) bool { return o.digest == other.digest }

// reference is what an event is about.
func (o *object) reference() *corev1.ObjectReference {
	ref := &corev1.ObjectReference{
		APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind,
		Namespace: o.namespace, Name: o.name, UID: o.uid, ResourceVersion: o.resourceVersion,
	}
	if o.namespace == "" {
		ref.APIVersion, ref.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ClusterPodDefaultKind
	}
	return ref
}
