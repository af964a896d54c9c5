// SPDX-License-Identifier: Apache-2.0

package registration

import "fmt"

// Mode says who writes webhook configurations. It is a pflag.Value; its zero
// value is not a mode, so that a flag needs a default.
type Mode string

const (
	// ModeAPI means that a [Keeper] writes them.
	ModeAPI Mode = "api"
	// ModeManifest means that a [Files] writes them, for kube-apiserver on the same
	// host.
	ModeManifest Mode = "manifest"
	// ModeNone means that somebody else does, for example with the output of
	// `sallyport manifests`.
	ModeNone Mode = "none"
)

// Set takes the value of a command line flag.
func (m *Mode) Set(value string) error {
	switch mode := Mode(value); mode {
	case ModeAPI, ModeManifest, ModeNone:
		*m = mode
		return nil
	}
	return fmt.Errorf("%q is not a way to register webhooks; choose %s, %s or %s", value, ModeAPI, ModeManifest, ModeNone)
}

// String returns the value as it stands on a command line.
func (m *Mode) String() string { return string(*m) }

// Type is what the help of a command calls the value.
func (*Mode) Type() string { return "api|manifest|none" }
