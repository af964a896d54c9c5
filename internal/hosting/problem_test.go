// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/registration"
)

func TestSettingsAreNamedAsFieldsOrAsFlags(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		err          error
		field, flags string
	}{
		"one": {(&RegistrationSettings{}).ValidateEndpoint(),
			"Registration.Service or Registration.URL is required: the API server must know where the webhooks are",
			"--service or --url is required: the API server must know where the webhooks are"},
		"a choice": {(&CertificateSettings{Source: "air"}).ValidateSource(),
			`Certificate.Source "air": choose authority or files`, `--certificate-source "air": choose authority or files`},
		"files that are missing": {(&CertificateSettings{Source: SourceFiles}).Validate(),
			"Certificate.Source files requires Certificate.CertFile and Certificate.KeyFile", "--certificate-source files requires --tls-cert-file and --tls-private-key-file"},
		"files of no use": {(&CertificateSettings{Source: SourceAuthority, CertFile: "a", CAFile: "b"}).Validate(),
			"Certificate.CertFile, Certificate.CAFile: only valid with Certificate.Source files", "--tls-cert-file, --tls-ca-file: only valid with --certificate-source files"},
		"several that were joined": {errors.Join(away, errors.Join((&RegistrationSettings{Mode: registration.ModeManifest}).ValidateMode())),
			"away\nRegistration.Mode manifest requires Registration.StaticManifestsDir", "away\n--registration manifest requires --static-manifests-dir"},
		"what was selected": {ValidateSelection("webhooks", []string{"a", "-b"}, []string{"c"}),
			"Webhooks: there is no \"a\"; choose among c\nWebhooks: there is no \"b\"; choose among c", "--webhooks: there is no \"a\"; choose among c\n--webhooks: there is no \"b\"; choose among c"},
		"something else": {away, "away", "away"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.field {
				t.Errorf("the library says %q, want %q", got, tc.field)
			}
			if got := ByFlags(tc.err).Error(); got != tc.flags {
				t.Errorf("a command says %q, want %q", got, tc.flags)
			}
		})
	}
	if wrapped := problemf("%s: %w", setting("owner"), away); !errors.Is(wrapped, away) || !errors.Is(ByFlags(wrapped), away) {
		t.Error("the cause is lost")
	}
	if ByFlags(nil) != nil || ValidateSelection("webhooks", []string{"*"}, nil) != nil {
		t.Error("nothing is wrong, and there is an error")
	}
}

func TestEverySettingHasAFieldAndAFlag(t *testing.T) {
	cmd := &cobra.Command{}
	var r RegistrationSettings
	r.AddModeFlag(cmd)
	r.AddDirectoryFlag(cmd)
	r.AddOwnerFlag(cmd)
	r.AddEndpointFlags(cmd)
	r.AddConversionFlag(cmd)
	r.AddFlags(cmd)
	(&CertificateSettings{}).AddFlags(cmd)
	(&AuthenticationSettings{}).AddFlags(cmd, AuthenticationModes())
	(&LeaderElectionSettings{}).AddFlags(cmd)
	for flag, field := range fields {
		if section, _, ok := strings.Cut(field, "."); ok && section != "Serving" && cmd.Flags().Lookup(string(flag)) == nil {
			t.Errorf("%s: there is no flag --%s", field, flag)
		}
	}
}
