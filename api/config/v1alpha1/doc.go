// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the file that configures a server, group config.sallyport.io.
// It is read from a file and never from a cluster.
package v1alpha1
