// SPDX-License-Identifier: Apache-2.0

package registration

import "github.com/sallyport-io/sallyport/registration"

// Settings, and what belongs to them, are those of the public package.
type (
	Settings               = registration.Settings
	LeaderElectionSettings = registration.LeaderElectionSettings
	Service                = registration.Service
	Mode                   = registration.Mode
)

// The modes of [Settings].
const (
	ModeAPI      = registration.ModeAPI
	ModeManifest = registration.ModeManifest
	ModeNone     = registration.ModeNone
)
