// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/serving"
)

// Authentication authenticates callers. It runs until the last review is answered.
type Authentication struct {
	// Authenticate is called before each call; see [serving.Options].
	Authenticate func(*http.Request) error
	// Ready returns nil once Authenticate works. Call [Environment.Changed] then. May
	// be nil.
	Ready func() error
	// Run runs until the context ends, and then returns nil. May be nil.
	Run func(ctx context.Context) error
}

// WithAuthentication adds a mode for --authentication. Build is called when a run uses
// it.
func WithAuthentication(name string, build func(Environment) (Authentication, error)) Option {
	return func(a *App) { a.authentications = append(a.authentications, authentication{name, build}) }
}

type authentication struct {
	name  string
	build func(Environment) (Authentication, error)
}

func (a *App) authenticationNames() []string {
	var others []string
	for _, other := range a.authentications {
		others = append(others, other.name)
	}
	return hosting.AuthenticationModes(others...)
}

func checkAuthentications(a *App) {
	names := a.authenticationNames()
	for i, other := range a.authentications {
		if other.name == "" || other.build == nil {
			a.problem("authentication %q: name and function are needed", other.name)
		}
		if slices.Contains(names[:i+2], other.name) {
			a.problem("authentication %q is there twice", other.name)
		}
	}
}

// authenticate builds the authentication of a mode. Nil accepts any caller.
func (a *App) authenticate(s *serving.AuthenticationSettings, mode string, env Environment) (*hosting.Authentication, error) {
	if mode == serving.AuthenticationClientCA {
		return hosting.ClientCA(s, env.Logger, env.Metrics)
	}
	for _, other := range a.authentications {
		if other.name == mode {
			made, err := other.build(env)
			if err != nil {
				return nil, fmt.Errorf("authentication %s: %w", other.name, err)
			}
			return (*hosting.Authentication)(&made), nil
		}
	}
	return nil, nil
}
