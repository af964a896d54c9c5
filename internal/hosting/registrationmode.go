// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
)

var registrationModes = []string{string(registration.ModeAPI), string(registration.ModeManifest), string(registration.ModeNone)}

// AddDirectoryFlag adds the flag for the directory of static manifests.
func (s *RegistrationSettings) AddDirectoryFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.StaticManifestsDir, "static-manifests-dir", s.StaticManifestsDir,
		"with --registration manifest: `directory` for static admission manifests; set staticManifestsDir of kube-apiserver's two webhook plugins to its subdirectories mutating and validating")
	cli.CompleteFolders(cmd, "static-manifests-dir")
}

// ValidateMode reports every problem in how the webhooks are registered.
func (s *RegistrationSettings) ValidateMode() error {
	return errors.Join(s.ValidateOwner(), s.validateDirectory())
}

func (s *RegistrationSettings) validateDirectory() error {
	if s.Mode != registration.ModeManifest {
		if s.StaticManifestsDir != "" {
			return problemf("%s: only valid with %s manifest", setting("static-manifests-dir"), setting("registration"))
		}
		return nil
	}
	var errs []error
	switch {
	case s.StaticManifestsDir == "":
		errs = append(errs, problemf("%s manifest requires %s", setting("registration"), setting("static-manifests-dir")))
	case !filepath.IsAbs(s.StaticManifestsDir):
		errs = append(errs, problemf("%s %q: must be an absolute path", setting("static-manifests-dir"), s.StaticManifestsDir))
	}
	if s.Service != "" {
		errs = append(errs, problemf("%s manifest requires %s: kube-apiserver does not allow a Service in static manifests", setting("registration"), setting("url")))
	}
	return errors.Join(errs...)
}

func completeModes(cmd *cobra.Command) { cli.CompleteChoices(cmd, "registration", registrationModes) }
