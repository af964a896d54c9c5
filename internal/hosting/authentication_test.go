// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"testing"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestNobodyKnowsPrivatePathsOfAServerAlone(t *testing.T) {
	type settings struct {
		Registration registration.Settings
		Certificate  certificate.Settings
	}
	for name, s := range map[string]*settings{
		"no Secret":               {Registration: registration.Settings{Mode: registration.ModeAPI, URL: "https://127.0.0.1"}},
		"others register":         {Registration: registration.Settings{Mode: registration.ModeNone, Service: &registration.Service{Namespace: "a", Name: "b"}}},
		"a certificate of others": {Registration: registration.Settings{Mode: registration.ModeAPI, Service: &registration.Service{Namespace: "a", Name: "b"}}, Certificate: certificate.Settings{Source: certificate.SourceFiles}},
	} {
		if SharesAuthority(&s.Certificate, &s.Registration) {
			t.Errorf("%s: paths would be private", name)
		}
	}
	shared := &settings{Registration: registration.Settings{Mode: registration.ModeAPI, Service: &registration.Service{Namespace: "a", Name: "b"}}, Certificate: certificate.Settings{Source: certificate.SourceAuthority}}
	if !SharesAuthority(&shared.Certificate, &shared.Registration) {
		t.Error("replicas that share an authority would not have private paths")
	}
}
