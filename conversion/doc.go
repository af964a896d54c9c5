// SPDX-License-Identifier: Apache-2.0

// Package conversion defines conversion webhooks of CustomResourceDefinitions: how to
// convert objects of one kind between all of its versions.
//
//	conversion.HubAndSpokes[*v1beta1.CronTab](scheme)
//
// is for types that convert themselves with controller-runtime's methods. [Functions] is
// for functions in other packages, [Unstructured] for objects without a Go type, and
// [APIVersionOnly] for versions that differ only in name.
//
// Every converter preserves the object's metadata, except for changes to labels and
// annotations: the API server allows no others (Kubernetes documentation, Versions in
// CustomResourceDefinitions, "Webhook conversion"). The rest of a typed converter's result
// is final: fields that its type does not know are lost, see [Converter.RoundTrip]. [Stash]
// keeps values that a version has no field for in an annotation.
//
// The package knows neither HTTP nor ConversionReview; package wire handles them.
package conversion
