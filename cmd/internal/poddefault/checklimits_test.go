// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

func TestWhatIsTooMuchIsRefusedWhenItIsWritten(t *testing.T) {
	for field, change := range map[string]func(*kubeflowv1alpha1.PodDefaultSpec){
		"spec.env: Too many": func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(validate.MaxList+1, 1, "x") },
		"spec.sidecars[0].env: Too many": func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Sidecars = []corev1.Container{{Env: variables(validate.MaxList+1, 1, "x")}}
		},
		"spec.sidecars: Too many":     func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Sidecars = make([]corev1.Container, validate.MaxBrought+1) },
		"nodeSelectorTerms: Too many": func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Affinity = nodeTermsOf(validate.MaxNodeTerms+1, "k") },
		"spec: Too long":              func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(1, meta.MaxSpec, "x") },
	} {
		pd := hostileObject("large", change)
		errs, _ := validate.Spec(&pd.Spec, specPath)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), field) {
			t.Errorf("%s: %.300v", field, errs)
		}
		if c := plan.Compile(pd); c.Problem() == nil || len(c.Env)+len(c.Containers)+len(c.NodeTerms) > 0 {
			t.Errorf("%s: the object is compiled: %.300v", field, c.Problem())
		}
	}
}

var specPath = field.NewPath("spec")
