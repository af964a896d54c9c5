// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// RequiredSemantics say what it means that several Datasets require nodes.
type RequiredSemantics string

// The two meanings.
const (
	// RequireAll is for nodes that all Datasets of a pod are content with.
	RequireAll RequiredSemantics = "and"
	// RequireAny is for nodes that one of them is content with, as Fluid's own webhook has
	// it.
	RequireAny RequiredSemantics = "or"
)

// SidecarMode says what kind of container a sidecar is.
type SidecarMode string

// The two kinds.
const (
	PlainSidecar  SidecarMode = "sidecar"
	NativeSidecar SidecarMode = "native-sidecar"
)

// Settings are those of the webhook.
type Settings struct {
	// PluginsProfile is Fluid's profile of plugins, as the key pluginsProfile of its
	// ConfigMap webhook-plugins has it. PluginsProfileFile is a file with one instead, which
	// is followed. Without both it is [DefaultProfile].
	PluginsProfile     string `json:"pluginsProfile,omitempty"`
	PluginsProfileFile string `json:"pluginsProfileFile,omitempty"`
	// RequiredSemantics is "and" by default.
	RequiredSemantics RequiredSemantics `json:"requiredSemantics"`
	// NamespaceLabel is for the older mode, too: all pods of namespaces with the label
	// fluid.io/enable-injection=true.
	NamespaceLabel bool `json:"namespaceLabel,omitempty"`
	// Disabled admits all pods as they are.
	Disabled bool `json:"disabled,omitempty"`
	// FilePrefetcherImage is for pods whose annotations name none.
	FilePrefetcherImage string `json:"filePrefetcherImage,omitempty"`
	// SidecarMode is "sidecar" by default.
	SidecarMode SidecarMode `json:"sidecarMode"`
	// PlatformLabel is a label of pods that names their serverless platform, deprecated.
	PlatformLabel string `json:"platformLabel,omitempty"`
}

// DefaultSettings are the settings of a webhook that was not told otherwise.
func DefaultSettings() Settings {
	return Settings{RequiredSemantics: RequireAll, SidecarMode: PlainSidecar}
}

// FromEnvironment takes over what the variables say that Fluid's own webhook knows; they
// are looked up by getenv. A value that is wrong is found by [Settings.Validate].
func (s *Settings) FromEnvironment(getenv func(string) string) {
	if disabled, err := strconv.ParseBool(getenv("DISABLE_INJECTION")); err == nil && disabled {
		s.Disabled = true
	}
	if image := getenv("FILE_PREFETCHER_IMAGE"); image != "" {
		s.FilePrefetcherImage = image
	}
	switch mode := getenv("FUSE_SIDECAR_INJECTION_MODE"); mode {
	case "":
	case "default", "legacy": // the values of Fluid's chart
		s.SidecarMode = PlainSidecar
	default:
		s.SidecarMode = SidecarMode(mode)
	}
	if key := getenv("KEY_SERVERLESS_PLATFORM"); key != "" {
		s.PlatformLabel = key
	}
}

// Validate reports every mistake, by the names that the fields have in a file. The file
// of a profile is read by [New].
func (s Settings) Validate() error {
	var errs []error
	if s.PluginsProfile != "" && s.PluginsProfileFile != "" {
		errs = append(errs, errors.New("pluginsProfileFile: the profile stands in pluginsProfile already: leave one out"))
	}
	if s.PluginsProfile != "" {
		if _, err := ParseProfile(s.PluginsProfile); err != nil {
			errs = append(errs, prefixed("pluginsProfile", err))
		}
	}
	switch s.RequiredSemantics {
	case RequireAll, RequireAny:
	default:
		errs = append(errs, fmt.Errorf("requiredSemantics: %q: choose %s or %s", s.RequiredSemantics, RequireAll, RequireAny))
	}
	switch s.SidecarMode {
	case PlainSidecar, NativeSidecar:
	default:
		errs = append(errs, fmt.Errorf("sidecarMode: %q: choose %s or %s", s.SidecarMode, PlainSidecar, NativeSidecar))
	}
	if s.PlatformLabel != "" {
		for _, problem := range validation.IsQualifiedName(s.PlatformLabel) {
			errs = append(errs, fmt.Errorf("platformLabel: %q: %s", s.PlatformLabel, problem))
		}
	}
	return errors.Join(errs...)
}

// prefixed puts the name of a field before each of the errors that were joined to one.
func prefixed(field string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", field, err)
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, prefixed(field, one))
	}
	return errors.Join(errs...)
}

// Files are those that the settings name: what they hold counts as if it stood here.
func (s Settings) Files() []string {
	if s.PluginsProfileFile == "" {
		return nil
	}
	return []string{s.PluginsProfileFile}
}

// profile reads the profile.
func (s Settings) profile() (*Profile, error) {
	switch {
	case s.PluginsProfileFile != "":
		data, err := os.ReadFile(s.PluginsProfileFile)
		if err != nil {
			return nil, fmt.Errorf("pluginsProfileFile: %w", err)
		}
		p, err := ParseProfile(string(data))
		if err != nil {
			return nil, prefixed("pluginsProfileFile: "+s.PluginsProfileFile, err)
		}
		return p, nil
	case s.PluginsProfile != "":
		return ParseProfile(s.PluginsProfile)
	}
	return ParseProfile(DefaultProfile)
}

// Sidecars tells whether pods get sidecars by the profile. A profile that cannot be read
// has none.
func (s Settings) Sidecars() bool {
	profile, err := s.profile()
	return err == nil && !s.Disabled && profile.sidecars()
}
