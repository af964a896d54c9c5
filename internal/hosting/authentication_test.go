// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

func TestProblemsInTheSettingsOfCallersAreNamed(t *testing.T) {
	modes := AuthenticationModes("other")
	for name, tc := range map[string]struct {
		authentication AuthenticationSettings
		source         string
		want           []string
	}{
		"none":                         {AuthenticationSettings{}, SourceFiles, nil},
		"client CA":                    {AuthenticationSettings{Mode: "client-ca", ClientCAFile: "x", ClientCommonNames: []string{"y"}}, SourceFiles, nil},
		"one that was added":           {AuthenticationSettings{Mode: "other", PrivatePaths: "true"}, SourceAuthority, nil},
		"one that nobody knows":        {AuthenticationSettings{Mode: "x"}, SourceFiles, []string{`Authentication.Mode "x": choose none, client-ca or other`}},
		"client CA without a file":     {AuthenticationSettings{Mode: "client-ca"}, SourceFiles, []string{"requires Authentication.ClientCAFile"}},
		"a file without client CA":     {AuthenticationSettings{ClientCAFile: "x"}, SourceFiles, []string{"only valid with"}},
		"names without client CA":      {AuthenticationSettings{Mode: "other", ClientCommonNames: []string{"x"}}, SourceFiles, []string{"only valid with"}},
		"private paths and files":      {AuthenticationSettings{PrivatePaths: "true"}, SourceFiles, []string{"Authentication.PrivatePaths requires Certificate.Source authority"}},
		"all that is wrong is told of": {AuthenticationSettings{Mode: "x", ClientCAFile: "x", PrivatePaths: "true"}, SourceFiles, []string{"choose", "only valid with", "Authentication.PrivatePaths"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.authentication.Validate(modes, &serving.Options{}, &CertificateSettings{Source: tc.source}, &RegistrationSettings{})
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("nothing of %q in %v", want, err)
				}
			}
		})
	}
	for metrics, want := range map[string]string{"other": "disables metrics", AuthenticationClientCA: "Authentication.Metrics"} {
		settings := &AuthenticationSettings{Metrics: metrics}
		if err := settings.Validate(modes, &serving.Options{MetricsBindAddress: "0"}, &CertificateSettings{}, &RegistrationSettings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("metrics for %s: %v", metrics, err)
		}
	}
	settings := &AuthenticationSettings{PrivatePaths: "true"}
	if err := settings.Validate(modes, &serving.Options{}, &CertificateSettings{}, &RegistrationSettings{Mode: registration.ModeNone}); err == nil || !strings.Contains(err.Error(), "Registration.Mode api") {
		t.Errorf("private paths that nobody registers: %v", err)
	}
}

func TestNobodyKnowsPrivatePathsOfAServerAlone(t *testing.T) {
	type settings struct {
		Registration RegistrationSettings
		Certificate  CertificateSettings
	}
	for name, s := range map[string]*settings{
		"no Secret":               {Registration: RegistrationSettings{Mode: registration.ModeAPI, URL: "https://127.0.0.1"}},
		"others register":         {Registration: RegistrationSettings{Mode: registration.ModeNone, Service: "a/b"}},
		"a certificate of others": {Registration: RegistrationSettings{Mode: registration.ModeAPI, Service: "a/b"}, Certificate: CertificateSettings{Source: SourceFiles}},
	} {
		if SharesAuthority(&s.Certificate, &s.Registration) {
			t.Errorf("%s: paths would be private", name)
		}
	}
	shared := &settings{Registration: RegistrationSettings{Mode: registration.ModeAPI, Service: "a/b"}, Certificate: CertificateSettings{Source: SourceAuthority}}
	if !SharesAuthority(&shared.Certificate, &shared.Registration) {
		t.Error("replicas that share an authority would not have private paths")
	}
}
