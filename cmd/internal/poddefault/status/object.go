// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

// A key names an object: a PodDefault, or a ClusterPodDefault if the namespace is
// empty.
type key = types.NamespacedName

// object is an object of the webhook, with data derived from its spec.
type object struct {
	*plan.Plan
	// The observed values, or those just written until the watch delivers them.
	status          *kubeflowv1alpha1.PodDefaultStatus
	resourceVersion string

	claims   []claim // ordered by place
	required []requirement
	warnings []string
}

func newObject(c *plan.Plan) *object {
	o := &object{claims: claims(c.Spec()), required: required(c.Selector())}
	var spec kubeflowv1alpha1.PodDefaultSpec
	if json.Unmarshal(c.Spec(), &spec) == nil {
		_, o.warnings = validate.Spec(&spec, field.NewPath("spec"))
		o.warnings = append(o.warnings, deadIn(c.Rolls(), c.Revision())...)
	}
	return o.with(c)
}

// deadIn returns what a rollout has that is about another revision than the current one, which
// is left behind by a change of the spec.
func deadIn(rollout *kubeflowv1alpha1.Rollout, current string) (warnings []string) {
	if rollout == nil {
		return nil
	}
	warn := func(field, name string) {
		if name != "" && name != current {
			warnings = append(warnings, fmt.Sprintf("spec.rollout.%s: it is about revision %s, and has no effect on %s: remove it", field, revision.Short(name), revision.Short(current)))
		}
	}
	warn("abortedRevision", rollout.AbortedRevision)
	if rollout.Promotion != nil {
		warn("promotion", rollout.Promotion.Revision)
	}
	return warnings
}

// with returns the object in a state with the same spec.
func (o *object) with(c *plan.Plan) *object {
	next := *o
	next.Plan, next.status, next.resourceVersion = c, c.Status(), c.Identity().ResourceVersion
	return &next
}

// sameSpec reports whether nothing relevant to conditions changed.
func (o *object) sameSpec(c *plan.Plan) bool {
	return o.Version() == c.Version() && bytes.Equal(o.Spec(), c.Spec())
}

func (o *object) key() key { return o.Identity().NamespacedName }

// selects reports whether a ClusterPodDefault applies in a namespace with these labels;
// nil labels are unknown.
func (o *object) selects(namespace labels.Set) bool {
	return namespace != nil && o.SelectsNamespace(namespace)
}

// reference returns the reference for events.
func (o *object) reference() *corev1.ObjectReference {
	ref := referenceTo(o.Plan)
	ref.ResourceVersion = o.resourceVersion
	return ref
}

func referenceTo(c *plan.Plan) *corev1.ObjectReference {
	is := c.Identity()
	ref := &corev1.ObjectReference{
		APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind,
		Namespace: is.Namespace, Name: is.Name, UID: is.UID, ResourceVersion: is.ResourceVersion,
	}
	if c.Cluster() {
		ref.APIVersion, ref.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ClusterPodDefaultKind
	}
	return ref
}
