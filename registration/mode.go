// SPDX-License-Identifier: Apache-2.0

package registration

import "fmt"

// Mode selects who writes webhook configurations. It is a pflag.Value; its zero value is
// not a mode, so a flag needs a default.
type Mode string

const (
	// ModeAPI means that a [Keeper] writes them.
	ModeAPI Mode = "api"
	// ModeManifest means that a [Files] writes them, for kube-apiserver on the same
	// host.
	ModeManifest Mode = "manifest"
	// ModeNone means that the server does not write them; they are applied from the output
	// of `sallyport manifests`, for example.
	ModeNone Mode = "none"
)

// Set implements pflag.Value.
func (m *Mode) Set(value string) error {
	switch mode := Mode(value); mode {
	case ModeAPI, ModeManifest, ModeNone:
		*m = mode
		return nil
	}
	return fmt.Errorf("unknown mode %q; choose %s, %s or %s", value, ModeAPI, ModeManifest, ModeNone)
}

// String implements pflag.Value.
func (m *Mode) String() string { return string(*m) }

// Type implements pflag.Value.
func (*Mode) Type() string { return "api|manifest|none" }
