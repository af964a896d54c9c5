// SPDX-License-Identifier: Apache-2.0

package certificate

import "github.com/sallyport-io/sallyport/serving/certificate"

type (
	// Settings are those of the public package.
	Settings = certificate.Settings
	// Source is that of the public package.
	Source = certificate.Source
)

// The values of [Settings.Source].
const (
	SourceAuthority = certificate.SourceAuthority
	SourceFiles     = certificate.SourceFiles
)

// DefaultSettings are those of the public package.
func DefaultSettings(name string) Settings { return certificate.DefaultSettings(name) }
