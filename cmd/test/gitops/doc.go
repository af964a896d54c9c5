// SPDX-License-Identifier: Apache-2.0

// Package gitops asks the tools that apply and watch objects what they make of PodDefaults: kstatus,
// which Flux and kpt use, and the script for Argo CD in docs/gitops. It is a module of its own, because
// nothing else needs these tools.
package gitops
