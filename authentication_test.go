// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// withKeys is a certificate source that has keys for private paths.
type withKeys struct {
	certificate.Source
	keys [][]byte
}

func (w *withKeys) PathKeys() [][]byte { return w.keys }

var always = &Settings{Authentication: AuthenticationSettings{PrivatePaths: "true"}}

// TestPrivatePathsChangeWithoutACallThatFails: servers that know private paths and others
// serve side by side while one replaces the other.
func TestPrivatePathsChangeWithoutACallThatFails(t *testing.T) {
	const private = "/a/0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		mode       string
		registered []string
		unknown    bool
		// Whether private paths are registered, and whether others are answered.
		chosen, plain bool
	}{
		"a new installation":                            {mode: PrivatePathsAuto, chosen: true},
		"one that has them":                             {mode: PrivatePathsAuto, registered: []string{private}, chosen: true},
		"one from before":                               {mode: PrivatePathsAuto, registered: []string{"/a"}, plain: true},
		"one that is half of it":                        {mode: PrivatePathsAuto, registered: []string{private, "/b"}, plain: true},
		"nobody has seen yet what is registered":        {mode: PrivatePathsAuto, unknown: true, plain: true},
		"switched on while the API server calls others": {mode: "true", registered: []string{"/a"}, chosen: true, plain: true},
		"switched on, and the API server knows":         {mode: "true", registered: []string{private}, chosen: true},
		"switched off":                                  {mode: "false", registered: []string{private}, plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &Settings{
				Authentication: AuthenticationSettings{PrivatePaths: tc.mode},
				Registration:   RegistrationSettings{Mode: registration.ModeAPI, Service: "a/b"}, Certificate: CertificateSettings{Source: SourceAuthority},
			}
			p, err := settings.newPrivatePaths(&withKeys{keys: [][]byte{[]byte("key")}}, func() ([]string, bool) { return tc.registered, !tc.unknown })
			if err != nil || p == nil {
				t.Fatalf("%v, %v", p, err)
			}
			if got := !isPlain(p.registered("/a")); got != tc.chosen {
				t.Errorf("private paths are registered: %t", got)
			}
			if got := p.plain(); got != tc.plain {
				t.Errorf("others are answered: %t", got)
			}
			if err := p.known(); (err != nil) != tc.unknown {
				t.Errorf("known: %v", err)
			}
			if len(p.segments("/a")) != 1 {
				t.Error("private paths are not answered")
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
		settings.Authentication.PrivatePaths = PrivatePathsAuto
		if p, err := settings.newPrivatePaths(&withKeys{}, nil); p != nil || err != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestPlainPathsAreAnsweredForAWhileAfterTheyWereRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registered := []string{"/a"}
		p := &privatePaths{keys: &withKeys{}, mode: "true", live: func() ([]string, bool) { return registered, true }}
		if !p.plain() {
			t.Error("the API server calls a path that nobody answers")
		}
		registered = nil
		time.Sleep(stillCalled - time.Second)
		if !p.plain() {
			t.Error("an API server that has not heard of the change is refused")
		}
		time.Sleep(2 * time.Second)
		if p.plain() {
			t.Error("others are answered for ever")
		}
	})
}

func TestPrivatePathsFollowTheKeys(t *testing.T) {
	source := &withKeys{}
	private, err := always.newPrivatePaths(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	if private.ready() == nil || len(private.segments("/a")) != 0 {
		t.Error("there are paths without a key")
	}
	source.keys = [][]byte{[]byte("first")}
	first := private.segments("/a")
	if len(first) != 1 || len(first[0]) != 32 || private.ready() != nil {
		t.Fatalf("segments %q", first)
	}
	if other := private.segments("/b"); other[0] == first[0] {
		t.Error("who knows one path knows another")
	}
	webhooks := []admission.Webhook{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b"}}
	registered := (&process{private: private}).registered(webhooks)
	if registered[0].Path != "/a/"+first[0] || webhooks[0].Path != "/a" {
		t.Errorf("registered %q, defined %q", registered[0].Path, webhooks[0].Path)
	}

	source.keys = [][]byte{[]byte("second"), []byte("first")} // as while a CA is rotated
	second := private.segments("/a")
	if len(second) != 2 || second[0] == first[0] || second[1] != first[0] {
		t.Errorf("segments %q, before %q", second, first)
	}
	if path := (&process{private: private}).registered(webhooks)[0].Path; path != "/a/"+second[0] {
		t.Errorf("registered %q", path)
	}
}

func TestPrivatePathsAreServedAndRegisteredAlike(t *testing.T) {
	source := &withKeys{keys: [][]byte{[]byte("key")}}
	private, err := always.newPrivatePaths(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{private: private}
	options := serving.DefaultOptions()
	p.guard(&options)
	if len(options.Checks) != 1 || options.Checks[0].Ready() != nil || !options.Checks[0].Gate {
		t.Errorf("checks %+v", options.Checks)
	}
	registered := p.registered([]admission.Webhook{{Path: "/a"}})[0].Path
	if want := "/a/" + options.PathSegments("/a")[0]; registered != want {
		t.Errorf("registered %q, served %q", registered, want)
	}
}

func TestASourceWithoutKeysHasNoPrivatePaths(t *testing.T) {
	files := struct{ certificate.Source }{}
	if _, err := always.newPrivatePaths(files, nil); err == nil || !strings.Contains(err.Error(), "--private-paths") {
		t.Errorf("got %v", err)
	}
}

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

func TestAuthenticationGuardsTheListener(t *testing.T) {
	asked := func(*http.Request) error { return serving.ErrForbidden }
	a := &App{authentications: []authentication{{"mine", func(env Environment) (Authentication, error) {
		return Authentication{Authenticate: asked, Ready: func() error { return net.ErrClosed }}, nil
	}}}}
	callers, err := a.authenticate(&AuthenticationSettings{}, "mine", Environment{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	options := serving.DefaultOptions()
	(&process{callers: callers}).guard(&options)
	if !options.ClientCertificates || options.Authenticate(nil) == nil || len(options.Checks) != 1 || options.Checks[0].Ready() == nil {
		t.Errorf("options %+v", options)
	}
	options = serving.DefaultOptions()
	(&process{readers: callers}).guard(&options)
	if !options.ClientCertificates || options.Authenticate != nil || options.AuthenticateMetrics(nil) == nil || len(options.Checks) != 0 {
		t.Errorf("who reads metrics is asked: options %+v", options)
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
