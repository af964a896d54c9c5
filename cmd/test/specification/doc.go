// SPDX-License-Identifier: Apache-2.0

// Package specification states the rules of docs/poddefault.md as a program, and compares the server with it.
//
// It is written from that page, typed over corev1.Pod, and naive: each object is tried, field by field, on a copy of the pod,
// and all starts anew if one is dropped. It shares no code with cmd/internal/poddefault, knows neither patches nor raw
// JSON, and is as slow as that. Headings of the page are headings here:
//
//	specification.go  which PodDefaults, and in which order; conflicts; alternatives; data connections
//	fields.go         the table of fields
//	containers.go     which containers; positions; placeholders
//	finished.go       rules of the finished pod; PodDefaults that cannot work
//	carries.go        what a pod carries afterwards; what came with the request; pods that are sent again
//
// It leaves out limits, since random pods are small; rollouts and exemptions, which docs/poddefault-operations.md describes and
// which decide only which revision, or whether, an object is tried; rules of the finished pod that
// random pods cannot break; what is rejected when it is written; warnings about
// resources that several containers get; sallyport.io/poddefaults-gone and audit annotations; Secrets
// beyond the 100th, and names of volumes for Secrets whose names are not labels; and the words of messages, of which only the
// objects are compared.
package specification
