// SPDX-License-Identifier: Apache-2.0

package author

import (
	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

// judge returns errors and warnings for the spec of an object. Errors are for what can
// never work or what its author may not set, warnings for what is suspicious. The error
// return means that the spec cannot be decoded.
func judge(resource metav1.GroupVersionResource, raw []byte) (errs field.ErrorList, warnings []string, err error) {
	path := field.NewPath("spec")
	var whole sallyportv1alpha1.ClusterPodDefaultSpec
	cluster := schema.GroupVersionResource(resource) == clusterPodDefaults
	if cluster {
		err = unmarshal(raw, &whole)
	} else {
		err = unmarshal(raw, &whole.PodDefaultSpec)
	}
	if err != nil {
		return nil, nil, err
	}
	spec := &whole.PodDefaultSpec
	errs = append(tooLarge(&spec.Selector, path.Child("selector")), tooLarge(whole.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, tooLarge(spec.EnvFromSecretSelector, path.Child("envFromSecretSelector"))...)
	errs = append(errs, tooLarge(spec.VolumesFromSecretSelector, path.Child("volumesFromSecretSelector"))...)
	if len(errs) > 0 { // otherwise thousands of errors would follow
		return errs, nil, nil
	}
	add := func(more field.ErrorList, moreWarnings []string) {
		errs, warnings = append(errs, more...), append(warnings, moreWarnings...)
	}
	add(validate.Spec(spec, path))
	if cluster {
		add(validate.ClusterSpec(&whole, path), nil)
	}
	add(trustedKeys(spec.Labels, path.Child("labels")))
	add(trustedKeys(spec.Annotations, path.Child("annotations")))
	add(controlPlane(spec, path, cluster))
	add(strayPlaceholders(raw, spec, path), nil)
	return errs, warnings, nil
}

// Refusals returns the errors of a spec for which the webhook refuses an object, whoever writes it.
// The error means that the spec cannot be decoded.
func Refusals(cluster bool, spec []byte) (field.ErrorList, error) {
	resource := podDefaults
	if cluster {
		resource = clusterPodDefaults
	}
	errs, _, err := judge(metav1.GroupVersionResource(resource), spec)
	return errs, err
}

// unmarshal decodes a spec, which may be missing.
func unmarshal(raw []byte, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
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
