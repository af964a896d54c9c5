// SPDX-License-Identifier: Apache-2.0

// Package conversion says what a conversion webhook of a CustomResourceDefinition is:
// how the objects of one kind get from any of its versions to any other.
//
//	conversion.HubAndSpokes[*v1beta1.CronTab](scheme)
//
// is for types that convert themselves, with the methods that controller-runtime
// knows; [Functions] is for functions of other packages, [Unstructured] for objects
// without a Go type, and [APIVersionOnly] for versions that differ by their name alone.
//
// Whatever converts, the metadata of the result are those of the bytes that came: of
// them, a converter may change labels and annotations, as the API server allows no
// more (Kubernetes documentation, Versions in CustomResourceDefinitions, "Webhook
// conversion"). The rest of what a typed converter returns is final: a field that its
// type does not know is gone, see [Converter.RoundTrip]. What a version cannot hold,
// [Stash] keeps in an annotation.
//
// The package knows neither HTTP nor ConversionReview; package wire does.
package conversion
