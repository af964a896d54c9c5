// SPDX-License-Identifier: Apache-2.0

package registration

import "github.com/sallyport-io/sallyport/registration"

// What users set is in the public package.
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
