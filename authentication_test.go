// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// withKeys is a certificate source that has keys for private paths.
func TestMistakesInTheSettingsOfCallersAreNamed(t *testing.T) {
	nobody := func(Environment) (Authentication, error) { return Authentication{}, nil }
	a := &App{authentications: []authentication{{"other", nobody}}}
	for name, tc := range map[string]struct {
		authentication AuthenticationSettings
		source         string
		want           []string
	}{
		"none":                         {AuthenticationSettings{}, SourceFiles, nil},
		"client CA":                    {AuthenticationSettings{Mode: "client-ca", ClientCAFile: "x", ClientCommonNames: []string{"y"}}, SourceFiles, nil},
		"one that was added":           {AuthenticationSettings{Mode: "other", PrivatePaths: "true"}, SourceAuthority, nil},
		"one that nobody knows":        {AuthenticationSettings{Mode: "x"}, SourceFiles, []string{`--authentication "x": choose none, client-ca or other`}},
		"client CA without a file":     {AuthenticationSettings{Mode: "client-ca"}, SourceFiles, []string{"needs --client-ca-file"}},
		"a file without client CA":     {AuthenticationSettings{ClientCAFile: "x"}, SourceFiles, []string{"of no use"}},
		"names without client CA":      {AuthenticationSettings{Mode: "other", ClientCommonNames: []string{"x"}}, SourceFiles, []string{"of no use"}},
		"private paths and files":      {AuthenticationSettings{PrivatePaths: "true"}, SourceFiles, []string{"--private-paths needs --certificate-source authority"}},
		"all that is wrong is told of": {AuthenticationSettings{Mode: "x", ClientCAFile: "x", PrivatePaths: "true"}, SourceFiles, []string{"choose", "of no use", "--private-paths"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := a.validateAuthentication(&Settings{Authentication: tc.authentication, Certificate: CertificateSettings{Source: tc.source}})
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
}

func TestNobodyKnowsPrivatePathsOfAServerAlone(t *testing.T) {
	for name, settings := range map[string]*Settings{
		"no Secret":               {Registration: RegistrationSettings{Mode: registration.ModeAPI, URL: "https://127.0.0.1"}},
		"others register":         {Registration: RegistrationSettings{Mode: registration.ModeNone, Service: "a/b"}},
		"a certificate of others": {Registration: RegistrationSettings{Mode: registration.ModeAPI, Service: "a/b"}, Certificate: CertificateSettings{Source: SourceFiles}},
	} {
		if settings.sharesAuthority() {
			t.Errorf("%s: paths would be private", name)
		}
	}
	shared := &Settings{Registration: RegistrationSettings{Mode: registration.ModeAPI, Service: "a/b"}, Certificate: CertificateSettings{Source: SourceAuthority}}
	if !shared.sharesAuthority() {
		t.Error("replicas that share an authority would not have private paths")
	}
}

func TestMistakesInAuthenticationsAreNamed(t *testing.T) {
	nobody := func(Environment) (Authentication, error) { return Authentication{}, nil }
	for name, tc := range map[string]struct {
		options []Option
		want    string
	}{
		"no function":          {[]Option{WithAuthentication("a", nil)}, "name and function"},
		"no name":              {[]Option{WithAuthentication("", nobody)}, "name and function"},
		"one that is built in": {[]Option{WithAuthentication("none", nobody)}, `"none" is there twice`},
		"one twice":            {[]Option{WithAuthentication("a", nobody), WithAuthentication("a", nobody)}, `"a" is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New("app", tc.options...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnAuthenticationIsMadeForTheModeThatIsChosen(t *testing.T) {
	asked := func(*http.Request) error { return serving.ErrForbidden }
	a := &App{authentications: []authentication{{"mine", func(env Environment) (Authentication, error) {
		return Authentication{Authenticate: asked, Ready: func() error { return net.ErrClosed }}, nil
	}}}}
	callers, err := a.authenticate(&AuthenticationSettings{}, "mine", Environment{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if callers == nil || !errors.Is(callers.Authenticate(nil), serving.ErrForbidden) || callers.Ready() == nil {
		t.Errorf("callers %+v", callers)
	}
	if callers, err := a.authenticate(&AuthenticationSettings{}, AuthenticationNone, Environment{}); callers != nil || err != nil {
		t.Errorf("everybody may call, and %v, %v", callers, err)
	}
	for metrics, want := range map[string]string{"mine": "switches metrics off", AuthenticationClientCA: "--metrics-authentication"} {
		settings := &Settings{Authentication: AuthenticationSettings{Metrics: metrics}, Serving: serving.Options{MetricsBindAddress: "0"}}
		if err := a.validateAuthentication(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("metrics for %s: %v", metrics, err)
		}
	}
	settings := &Settings{Authentication: AuthenticationSettings{PrivatePaths: "true"}, Registration: RegistrationSettings{Mode: registration.ModeNone}}
	if err := a.validateAuthentication(settings); err == nil || !strings.Contains(err.Error(), "--registration api") {
		t.Errorf("private paths that nobody registers: %v", err)
	}
	if _, err := a.authenticate(&AuthenticationSettings{ClientCAFile: t.TempDir()}, AuthenticationClientCA, Environment{}); err == nil {
		t.Error("a folder passes for a CA")
	}
}
