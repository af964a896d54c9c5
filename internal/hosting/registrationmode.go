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

// AddDirectoryFlag adds the flag that says where static manifests are written.
func (s *RegistrationSettings) AddDirectoryFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.StaticManifestsDir, "static-manifests-dir", s.StaticManifestsDir,
		"with --registration manifest: `directory` for static admission manifests; staticManifestsDir of kube-apiserver's two webhook plugins names its folders mutating and validating")
	cli.CompleteFolders(cmd, "static-manifests-dir")
}

// ValidateMode reports every problem in how the webhooks are registered.
func (s *RegistrationSettings) ValidateMode() error {
	return errors.Join(s.ValidateOwner(), s.validateDirectory())
}

func (s *RegistrationSettings) validateDirectory() error {
	if s.Mode != registration.ModeManifest {
		if s.StaticManifestsDir != "" {
			return problemf("%s: of no use without %s manifest", setting("static-manifests-dir"), setting("registration"))
		}
		return nil
	}
	var errs []error
	switch {
	case s.StaticManifestsDir == "":
		errs = append(errs, problemf("%s manifest needs %s", setting("registration"), setting("static-manifests-dir")))
	case !filepath.IsAbs(s.StaticManifestsDir):
		errs = append(errs, problemf("%s %q: write an absolute path", setting("static-manifests-dir"), s.StaticManifestsDir))
	}
	if s.Service != "" {
		errs = append(errs, problemf("%s manifest needs %s: kube-apiserver takes no Service in static manifests", setting("registration"), setting("url")))
	}
	return errors.Join(errs...)
}

func completeModes(cmd *cobra.Command) { cli.CompleteChoices(cmd, "registration", registrationModes) }
