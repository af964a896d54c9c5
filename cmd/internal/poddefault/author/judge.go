// SPDX-License-Identifier: Apache-2.0

package author

import (
	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

// decode decodes the spec of an object, which may be missing. That of a PodDefault has nothing
// beside the spec shared by both kinds.
func decode(cluster bool, raw []byte) (spec *sallyportv1alpha1.ClusterPodDefaultSpec, err error) {
	spec = &sallyportv1alpha1.ClusterPodDefaultSpec{}
	switch {
	case len(raw) == 0:
	case cluster:
		err = json.Unmarshal(raw, spec)
	default:
		err = json.Unmarshal(raw, &spec.PodDefaultSpec)
	}
	return spec, err
}

// judge returns errors and warnings for the decoded spec of an object. Errors are for what can
// never work or what its author may not set, warnings for what is suspicious.
func judge(cluster bool, whole *sallyportv1alpha1.ClusterPodDefaultSpec, raw []byte) (errs field.ErrorList, warnings []string) {
	path, spec := field.NewPath("spec"), &whole.PodDefaultSpec
	errs = append(tooLarge(&spec.Selector, path.Child("selector")), tooLarge(whole.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, tooLarge(spec.EnvFromSecretSelector, path.Child("envFromSecretSelector"))...)
	errs = append(errs, tooLarge(spec.VolumesFromSecretSelector, path.Child("volumesFromSecretSelector"))...)
	if len(errs) > 0 { // otherwise thousands of errors would follow
		return errs, nil
	}
	add := func(more field.ErrorList, moreWarnings []string) {
		errs, warnings = append(errs, more...), append(warnings, moreWarnings...)
	}
	add(validate.Spec(spec, path))
	if cluster {
		add(validate.ClusterSpec(whole, path), nil)
	}
	add(trustedKeys(spec.Labels, path.Child("labels")))
	add(trustedKeys(spec.Annotations, path.Child("annotations")))
	add(controlPlane(spec, path, cluster))
	add(strayPlaceholders(raw, spec, path), nil)
	return errs, warnings
}

// Refusals returns the errors of a spec for which the webhook refuses an object, whoever writes it.
// The error means that the spec cannot be decoded.
func Refusals(cluster bool, raw []byte) (field.ErrorList, error) {
	spec, err := decode(cluster, raw)
	if err != nil {
		return nil, err
	}
	errs, _ := judge(cluster, spec, raw)
	return errs, nil
}

// Limits that no real selector reaches. Every created pod is matched against each
// selector.
const (
	maxRequirements = 64
	maxValues       = 1024
)

// tooLarge reports a selector that exceeds the limits. The selector may be nil.
func tooLarge(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	if n := len(selector.MatchLabels) + len(selector.MatchExpressions); n > maxRequirements {
		return field.ErrorList{field.TooMany(path, n, maxRequirements)}
	}
	values := 0
	for _, expression := range selector.MatchExpressions {
		values += len(expression.Values)
	}
	if values > maxValues {
		return field.ErrorList{field.TooMany(path.Child("matchExpressions"), values, maxValues)}
	}
	return nil
}
