// SPDX-License-Identifier: Apache-2.0

package certificate

import "github.com/sallyport-io/sallyport/serving/certificate"

// Settings, and what belongs to them, are those of the public package.
type (
	Settings = certificate.Settings
	Source   = certificate.Source
)

// The values of [Settings.Source].
const (
	SourceAuthority = certificate.SourceAuthority
	SourceFiles     = certificate.SourceFiles
)

// DefaultSettings are those of the public package.
func DefaultSettings(name string) Settings { return certificate.DefaultSettings(name) }
