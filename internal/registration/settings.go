// SPDX-License-Identifier: Apache-2.0

package registration

import "github.com/sallyport-io/sallyport/registration"

type (
	// Settings are those of the public package.
	Settings = registration.Settings
	// LeaderElectionSettings are those of the public package.
	LeaderElectionSettings = registration.LeaderElectionSettings
	// Service is that of the public package.
	Service = registration.Service
	// Mode is that of the public package.
	Mode = registration.Mode
)

// The modes of [Settings].
const (
	ModeAPI      = registration.ModeAPI
	ModeManifest = registration.ModeManifest
	ModeNone     = registration.ModeNone
)
