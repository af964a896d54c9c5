// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the configuration file of a server, group config.sallyport.io.
// It is read from a file and is not an API resource.
package v1alpha1
