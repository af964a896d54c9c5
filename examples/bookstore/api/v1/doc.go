// SPDX-License-Identifier: Apache-2.0

// Package v1 has Book of the API group bookstore.example.com.
//
// +kubebuilder:object:generate=true
// +groupName=bookstore.example.com
package v1
