// SPDX-License-Identifier: Apache-2.0

package servicetype

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Feature is what a Service may be forbidden to be: a spec.type, or to have external
// IPs, which any type can.
type Feature string

// The features, named as the API names them.
const (
	LoadBalancer Feature = "LoadBalancer"
	NodePort     Feature = "NodePort"
	ExternalName Feature = "ExternalName"
	ExternalIPs  Feature = "ExternalIPs"
)

var features = []Feature{LoadBalancer, NodePort, ExternalName, ExternalIPs}

// Settings say what Services may not be.
type Settings struct {
	// Forbidden is what no Service may be, but for exceptions. Default all of
	// LoadBalancer, NodePort, ExternalName and ExternalIPs.
	Forbidden []Feature `json:"forbidden"`
	// Exceptions allow what Forbidden forbids. One that is met is enough.
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// Exception allows Services to be what is forbidden. All its conditions must be met;
// at least one is needed.
type Exception struct {
	// Features are those that the exception is for; empty for all that are forbidden.
	Features []Feature `json:"features,omitempty"`
	// Namespaces are names of namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels that the Service must have. Whoever creates Services can set them: they keep
	// from accidents, not from intent.
	Labels map[string]string `json:"labels,omitempty"`
	// LoadBalancerClasses are values of spec.loadBalancerClass, for LoadBalancer only.
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitempty"`
}

// DefaultSettings are the settings of a webhook that was not told otherwise.
func DefaultSettings() Settings { return Settings{Forbidden: slices.Clone(features)} }

// Validate reports every mistake, by the names that the fields have in a file.
func (s Settings) Validate() error {
	var errs []error
	if len(s.Forbidden) == 0 {
		errs = append(errs, fmt.Errorf("forbidden: it is empty: name what Services may not be, of %s", oneOf()))
	}
	errs = append(errs, validateFeatures("forbidden", s.Forbidden)...)
	for i, exception := range s.Exceptions {
		at := fmt.Sprintf("exceptions[%d]", i)
		errs = append(errs, validateFeatures(at+".features", exception.Features)...)
		for j, feature := range exception.Features {
			if slices.Contains(features, feature) && !slices.Contains(s.Forbidden, feature) {
				errs = append(errs, fmt.Errorf("%s.features[%d]: %s is not forbidden", at, j, feature))
			}
		}
		errs = append(errs, exception.validate(at)...)
	}
	return errors.Join(errs...)
}

func (e *Exception) validate(at string) []error {
	var errs []error
	if len(e.Namespaces)+len(e.Labels)+len(e.LoadBalancerClasses) == 0 {
		errs = append(errs, fmt.Errorf("%s: it has no condition: name namespaces, labels or loadBalancerClasses; or forbid less", at))
	}
	if len(e.LoadBalancerClasses) > 0 && !slices.Equal(e.Features, []Feature{LoadBalancer}) {
		errs = append(errs, fmt.Errorf("%s.loadBalancerClasses: only a LoadBalancer has a class: write features: [LoadBalancer]", at))
	}
	for j, namespace := range e.Namespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, fmt.Errorf("%s.namespaces[%d]: %q: %s", at, j, namespace, problem))
		}
		if slices.Contains(e.Namespaces[:j], namespace) {
			errs = append(errs, fmt.Errorf("%s.namespaces[%d]: %q stands there twice", at, j, namespace))
		}
	}
	for _, key := range sortedKeys(e.Labels) {
		for _, problem := range validation.IsQualifiedName(key) {
			errs = append(errs, fmt.Errorf("%s.labels: key %q: %s", at, key, problem))
		}
		for _, problem := range validation.IsValidLabelValue(e.Labels[key]) {
			errs = append(errs, fmt.Errorf("%s.labels[%s]: %s", at, key, problem))
		}
	}
	for j, class := range e.LoadBalancerClasses {
		for _, problem := range validation.IsQualifiedName(class) {
			errs = append(errs, fmt.Errorf("%s.loadBalancerClasses[%d]: %q: %s", at, j, class, problem))
		}
		if slices.Contains(e.LoadBalancerClasses[:j], class) {
			errs = append(errs, fmt.Errorf("%s.loadBalancerClasses[%d]: %q stands there twice", at, j, class))
		}
	}
	return errs
}

func validateFeatures(at string, list []Feature) []error {
	var errs []error
	for i, feature := range list {
		if !slices.Contains(features, feature) {
			errs = append(errs, fmt.Errorf("%s[%d]: %q: choose of %s", at, i, feature, oneOf()))
		}
		if slices.Contains(list[:i], feature) {
			errs = append(errs, fmt.Errorf("%s[%d]: %s stands there twice", at, i, feature))
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
