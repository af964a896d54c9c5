// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the files of `sallyport test` and the lines of recordings, group
// test.sallyport.io. They are read from files and are not API resources.
//
// +kubebuilder:object:generate=true
// +groupName=test.sallyport.io
package v1alpha1
