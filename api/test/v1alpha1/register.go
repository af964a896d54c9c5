// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of the group.
const (
	SuiteKind          = "Suite"
	CaseKind           = "Case"
	RecordedReviewKind = "RecordedReview"
)

// GroupVersion is test.sallyport.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "test.sallyport.io", Version: "v1alpha1"}

// AddToScheme adds the types of this package and their defaults to a scheme. It never returns an
// error; scheme builders require the signature.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(SuiteKind), &Suite{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(CaseKind), &CaseFile{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(RecordedReviewKind), &RecordedReview{})
	scheme.AddTypeDefaultingFunc(&Suite{}, func(object any) {
		suite := object.(*Suite)
		for i := range suite.Cases {
			suite.Cases[i].inherit(&suite.Given)
			suite.Cases[i].setDefaults()
		}
	})
	scheme.AddTypeDefaultingFunc(&CaseFile{}, func(object any) { object.(*CaseFile).setDefaults() })
	return nil
}

// inherit takes what a case does not say from its suite.
func (g *Given) inherit(from *Given) {
	g.With = append(from.With[:len(from.With):len(from.With)], g.With...)
	g.Config = cmp.Or(g.Config, from.Config)
	g.Namespace, g.Operation = cmp.Or(g.Namespace, from.Namespace), cmp.Or(g.Operation, from.Operation)
	g.User = cmp.Or(g.User, from.User)
	g.Validate, g.Warnings = cmp.Or(g.Validate, from.Validate), cmp.Or(g.Warnings, from.Warnings)
}

// setDefaults sets all defaults but that of the namespace: whether a case names one decides whether
// it is a problem that no object of With is there.
func (g *Given) setDefaults() {
	g.Operation = cmp.Or(g.Operation, "CREATE")
	g.User = cmp.Or(g.User, &User{Username: "sallyport-test"})
	g.Validate, g.Warnings = cmp.Or(g.Validate, "strict"), cmp.Or(g.Warnings, "Allow")
}
