// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Extra are annotations and labels for other tools, such as cert-manager or a deployment tool.
type Extra struct{ Annotations, Labels map[string]string }

// Validate reports every problem, by the API server's rules.
func (e *Extra) Validate() error {
	var errs []error
	for _, problem := range validation.ValidateAnnotations(e.Annotations, field.NewPath("--annotation")) {
		errs = append(errs, problem)
	}
	for _, problem := range metav1validation.ValidateLabels(e.Labels, field.NewPath("--label")) {
		errs = append(errs, problem)
	}
	return errors.Join(errs...)
}

// Apply sets the annotations and labels on the objects. It overwrites existing values.
func (e *Extra) Apply(objects []runtime.Object) error {
	for _, object := range objects {
		of, err := meta.Accessor(object)
		if err != nil {
			return fmt.Errorf("annotations of %T: %w", object, err)
		}
		of.SetAnnotations(merged(of.GetAnnotations(), e.Annotations))
		of.SetLabels(merged(of.GetLabels(), e.Labels))
	}
	return nil
}

func merged(into, from map[string]string) map[string]string {
	if len(from) == 0 {
		return into
	}
	out := maps.Clone(into)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, from)
	return out
}
