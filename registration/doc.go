// SPDX-License-Identifier: Apache-2.0

// Package registration makes the API server call webhooks: it derives
// MutatingWebhookConfiguration and ValidatingWebhookConfiguration from webhook
// definitions, prints them ([Manifests]), and keeps them true in a cluster
// ([Keeper]) or in files of kube-apiserver ([Files]). A Keeper also keeps the
// conversion stanza of CustomResourceDefinitions.
//
// There is one object of each type for an application, both of one name, with
// the webhooks in the order of their definitions: inside one object the API
// server calls mutating webhooks in that order.
//
// Objects are written by server-side apply, so that Sallyport owns the fields it
// sets and no others: labels, annotations and even webhook entries that others
// add to the objects stay.
//
// Experimental: only the types that the stable core names keep their promise, see docs/compatibility.md.
package registration
