// SPDX-License-Identifier: Apache-2.0

// Package install installs Sallyport as its users do: with Helm, with kustomize, and
// with what `sallyport manifests` prints. Helm and kustomize are built from their Go
// modules, pinned in tools/deploy. Everything goes to a real API server.
package install
