// SPDX-License-Identifier: Apache-2.0

// Package bad has what the conventions forbid.
package bad

// Thing is an API type.
type Thing struct {
	// The size of it.
	Size int `json:"size"`

	// names are its names.
	// +optional
	Names []string `json:"names,omitempty"`
}
