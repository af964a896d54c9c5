// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiservermanifest "k8s.io/apiserver/pkg/admission/plugin/manifest"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Static reports whether an object of that name is one of a static manifest of the API server (KEP-5793): no other object may
// have such a name.
func Static(name string) bool { return strings.HasSuffix(name, apiservermanifest.StaticConfigSuffix) }

// ReadStatic reads directories of static manifests. The error has each object that kube-apiserver would not take from there.
func ReadStatic(directories []string) ([]*manifest.Object, error) {
	all, err := manifest.Read(directories, strings.NewReader(""))
	errs := []error{err}
	for _, o := range all {
		switch {
		case o.GVK().Group != admissionregistrationv1.GroupName:
			errs = append(errs, o.ErrorAt("", o.Title()+" is not for static manifests: they have webhook configurations, policies and bindings"))
		case !Static(o.Name):
			errs = append(errs, o.ErrorAt("/metadata/name", o.Title()+": in a static manifest, its name has to end in "+apiservermanifest.StaticConfigSuffix))
		}
	}
	return all, errors.Join(errs...)
}

// HasStaticPolicies reports whether there are policies of static manifests.
func (o *Objects) HasStaticPolicies() bool {
	return slices.ContainsFunc(o.MutatingPolicies, func(p Entry[admissionregistrationv1.MutatingAdmissionPolicy]) bool { return Static(p.Name) }) ||
		slices.ContainsFunc(o.ValidatingPolicies, func(p Entry[admissionregistrationv1.ValidatingAdmissionPolicy]) bool { return Static(p.Name) })
}

// checkStatic returns the static policies and bindings that kube-apiserver refuses, and with them all of their directory:
// k8s.io/apiserver/pkg/admission/plugin/policy/manifest/loader.
func (o *Objects) checkStatic() error {
	var errs []error
	add := func(o *manifest.Object, at, format string, args ...any) {
		errs = append(errs, o.ErrorAt(jsontext.Pointer("/spec/"+at), o.Title()+": in a static manifest, "+fmt.Sprintf(format, args...)))
	}
	policy := func(o *manifest.Object, kind *admissionregistrationv1.ParamKind) {
		if kind != nil {
			add(o, "paramKind", "a policy has no paramKind")
		}
	}
	binding := func(o *manifest.Object, name string, ref *admissionregistrationv1.ParamRef, exists bool) {
		switch {
		case ref != nil:
			add(o, "paramRef", "a binding has no paramRef")
		case !Static(name) || !exists:
			add(o, "policyName", "a binding names a policy of a static manifest, and there is no such policy %s", name)
		}
	}
	for _, p := range o.MutatingPolicies {
		if Static(p.Name) {
			policy(p.Object, p.Value.Spec.ParamKind)
		}
	}
	for _, p := range o.ValidatingPolicies {
		if Static(p.Name) {
			policy(p.Object, p.Value.Spec.ParamKind)
		}
	}
	for _, b := range o.MutatingBindings {
		if name := b.Value.Spec.PolicyName; Static(b.Name) {
			binding(b.Object, name, b.Value.Spec.ParamRef, has(o.MutatingPolicies, name))
		}
	}
	for _, b := range o.ValidatingBindings {
		if name := b.Value.Spec.PolicyName; Static(b.Name) {
			binding(b.Object, name, b.Value.Spec.ParamRef, has(o.ValidatingPolicies, name))
		}
	}
	return errors.Join(errs...)
}

func has[T any](list []Entry[T], name string) bool {
	return slices.ContainsFunc(list, func(e Entry[T]) bool { return e.Name == name })
}

// before is the order in which the API server has objects of a kind: those of static manifests first, then by name.
func before[T any](a, b Entry[T]) int {
	if Static(a.Name) != Static(b.Name) {
		if Static(a.Name) {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}
