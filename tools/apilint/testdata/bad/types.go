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

// File is what a program reads.
type File struct {
	// part is a part of it.
	// +optional
	Part *Part `json:"part,omitempty"`
}

// Part is reached from File.
type Part struct {
	// count counts.
	// +optional
	Count int `json:"count,omitempty"`

	// names are its names.
	// +optional
	Names []string `json:"names,omitempty"`
}
