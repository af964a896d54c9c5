// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Extra are annotations and labels that others read in what is printed: cert-manager, or a tool
// that deploys it.
type Extra struct{ Annotations, Labels map[string]string }

// AddFlags adds the flags; objects says which ones get them.
func (e *Extra) AddFlags(flags *pflag.FlagSet, objects string) {
	flags.StringToStringVar(&e.Annotations, "annotation", nil,
		"`key=value` for the annotations of "+objects+", for example cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE; may be repeated")
	flags.StringToStringVar(&e.Labels, "label", nil, "`key=value` for the labels of "+objects+"; may be repeated")
}

// Validate reports every problem, as the API server does.
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

// Apply adds them to the objects. What an object has of the same name, they replace.
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
