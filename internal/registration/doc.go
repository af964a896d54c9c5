// SPDX-License-Identifier: Apache-2.0

// Package registration registers webhooks with the API server: it derives
// MutatingWebhookConfiguration and ValidatingWebhookConfiguration from webhook definitions,
// prints them ([Manifests]), and reconciles them in a cluster ([Controller]) or in static
// manifests of kube-apiserver ([Files]). A Controller also reconciles the conversion stanzas of
// CustomResourceDefinitions.
//
// An application has one object of each type, both with the same name, with the webhooks in
// the order of their definitions: the API server calls the mutating webhooks of an object
// in that order.
//
// Objects are written by server-side apply, so that Sallyport owns only the fields it sets:
// labels, annotations and even webhook entries of other managers are preserved.
//
// Experimental: only the types that the stable core names keep their promise, see docs/compatibility.md.
package registration
