// SPDX-License-Identifier: Apache-2.0

package servicetype

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Feature is a feature of Services that can be forbidden: a spec.type, or external IPs of
// any type.
type Feature string

// The features, named as the API names them.
const (
	LoadBalancer Feature = "LoadBalancer"
	NodePort     Feature = "NodePort"
	ExternalName Feature = "ExternalName"
	ExternalIPs  Feature = "ExternalIPs"
)

var features = []Feature{LoadBalancer, NodePort, ExternalName, ExternalIPs}

// Settings configure which Services are forbidden.
type Settings struct {
	// forbidden are the forbidden features, except for exceptions. Default LoadBalancer,
	// NodePort, ExternalName and ExternalIPs.
	Forbidden []Feature `json:"forbidden"`
	// exceptions allow forbidden features. One matching exception is sufficient.
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// Exception allows forbidden features of Services. All its conditions must be met; at least
// one is required.
type Exception struct {
	// features are the allowed features. If empty, all forbidden features are allowed.
	Features []Feature `json:"features,omitempty"`
	// namespaces are the names of namespaces that the exception applies to.
	Namespaces []string `json:"namespaces,omitempty"`
	// labels are those that the Service must have. Anyone who creates Services can set them: they
	// prevent accidents, not abuse.
	Labels map[string]string `json:"labels,omitempty"`
	// loadBalancerClasses are values of spec.loadBalancerClass, for LoadBalancer only.
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitempty"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings { return Settings{Forbidden: slices.Clone(features)} }

// Validate reports all problems, by the names of the fields in a file.
func (s Settings) Validate() error {
	var errs field.ErrorList
	if len(s.Forbidden) == 0 {
		errs = append(errs, field.Required(field.NewPath("forbidden"), "list forbidden types of Services, of "+oneOf()))
	}
	errs = append(errs, validateFeatures(field.NewPath("forbidden"), s.Forbidden)...)
	for i, exception := range s.Exceptions {
		at := field.NewPath("exceptions").Index(i)
		errs = append(errs, validateFeatures(at.Child("features"), exception.Features)...)
		for j, feature := range exception.Features {
			if slices.Contains(features, feature) && !slices.Contains(s.Forbidden, feature) {
				errs = append(errs, field.Invalid(at.Child("features").Index(j), feature, "it is not forbidden"))
			}
		}
		errs = append(errs, exception.validate(at)...)
	}
	return errs.ToAggregate()
}

func (e *Exception) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(e.Namespaces)+len(e.Labels)+len(e.LoadBalancerClasses) == 0 {
		errs = append(errs, field.Required(at, "it has no condition: name namespaces, labels or loadBalancerClasses; or forbid less"))
	}
	if len(e.LoadBalancerClasses) > 0 && !slices.Equal(e.Features, []Feature{LoadBalancer}) {
		errs = append(errs, field.Forbidden(at.Child("loadBalancerClasses"), "only a LoadBalancer has a class: write features: [LoadBalancer]"))
	}
	for j, namespace := range e.Namespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(at.Child("namespaces").Index(j), namespace, problem))
		}
		if slices.Contains(e.Namespaces[:j], namespace) {
			errs = append(errs, field.Duplicate(at.Child("namespaces").Index(j), namespace))
		}
	}
	for _, key := range sortedKeys(e.Labels) {
		for _, problem := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(at.Child("labels"), key, problem))
		}
		for _, problem := range validation.IsValidLabelValue(e.Labels[key]) {
			errs = append(errs, field.Invalid(at.Child("labels").Key(key), e.Labels[key], problem))
		}
	}
	for j, class := range e.LoadBalancerClasses {
		for _, problem := range validation.IsQualifiedName(class) {
			errs = append(errs, field.Invalid(at.Child("loadBalancerClasses").Index(j), class, problem))
		}
		if slices.Contains(e.LoadBalancerClasses[:j], class) {
			errs = append(errs, field.Duplicate(at.Child("loadBalancerClasses").Index(j), class))
		}
	}
	return errs
}

func validateFeatures(at *field.Path, list []Feature) field.ErrorList {
	var errs field.ErrorList
	for i, feature := range list {
		if !slices.Contains(features, feature) {
			errs = append(errs, field.NotSupported(at.Index(i), feature, features))
		}
		if slices.Contains(list[:i], feature) {
			errs = append(errs, field.Duplicate(at.Index(i), feature))
		}
	}
	return errs
}

func oneOf() string {
	names := make([]string, len(features))
	for i, feature := range features {
		names[i] = string(feature)
	}
	return strings.Join(names, ", ")
}
