// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Limits for one review. The status reports the rest.
const (
	maxCompared = 1000
	maxTold     = 3
)

// disagreements warns of other objects that conflict on pods which both select.
func (h *handler) disagreements(ctx context.Context, req *admissionv1.AdmissionRequest, spec *sallyportv1alpha1.ClusterPodDefaultSpec) (warnings []string) {
	if h.neighbours == nil {
		return nil
	}
	object := compile(req, spec)
	for i, other := range h.neighbours.Neighbours(req.Namespace) {
		if i == maxCompared || len(warnings) >= maxTold || ctx.Err() != nil {
			break
		}
		if other.String() == object.String() {
			continue
		}
		if places := compare.OfPlans(object, other); len(places) > 0 {
			warnings = append(warnings, compare.Disagreement(object, other, places, maxTold))
		}
		warnings = append(warnings, compare.SelectedInTurn(object, other)...)
	}
	return warnings
}

// compile compiles the object of a request.
func compile(req *admissionv1.AdmissionRequest, spec *sallyportv1alpha1.ClusterPodDefaultSpec) *plan.Plan {
	meta := metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}
	if ofCluster(req) {
		return plan.CompileCluster(&sallyportv1alpha1.ClusterPodDefault{ObjectMeta: meta, Spec: *spec})
	}
	return plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: meta, Spec: spec.PodDefaultSpec})
}

func ofCluster(req *admissionv1.AdmissionRequest) bool {
	return schema.GroupVersionResource(req.Resource) == clusterPodDefaults
}
