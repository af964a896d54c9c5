// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/serving"
)

// withKeys is a certificate source that has keys for private paths.
func TestProblemsInAuthenticationsAreNamed(t *testing.T) {
	nobody := func(Environment) (Authentication, error) { return Authentication{}, nil }
	for name, tc := range map[string]struct {
		options []Option
		want    string
	}{
		"no function":          {[]Option{WithAuthentication("a", nil)}, "name and function"},
		"no name":              {[]Option{WithAuthentication("", nobody)}, "name and function"},
		"one that is built in": {[]Option{WithAuthentication("None", nobody)}, `"None" is there twice`},
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
	callers, err := a.authenticate(&serving.AuthenticationSettings{}, "mine", Environment{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if callers == nil || !errors.Is(callers.Authenticate(nil), serving.ErrForbidden) || callers.Ready() == nil {
		t.Errorf("callers %+v", callers)
	}
	if callers, err := a.authenticate(&serving.AuthenticationSettings{}, serving.AuthenticationNone, Environment{}); callers != nil || err != nil {
		t.Errorf("everybody may call, and %v, %v", callers, err)
	}
	if _, err := a.authenticate(&serving.AuthenticationSettings{ClientCAFile: t.TempDir()}, serving.AuthenticationClientCA, Environment{}); err == nil {
		t.Error("a folder passes for a CA")
	}
}
