// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
)

// lastSpans limits the time to export the last spans.
const lastSpans = 5 * time.Second

// Options say how a server starts.
type Options struct {
	// File is the path of the configuration; empty for none. Given are the flags that override
	// it: see [Load].
	File  string
	Given *setting.Given
	// Version is the server's reported version.
	Version string
	// Log receives the log.
	Log io.Writer
}

// Run serves until a signal ends it.
func Run(ctx context.Context, o Options) error {
	config, err := Load(o.File, o.Given)
	if config == nil {
		return err
	}
	settings := config.appSettings()
	var noCluster bool
	var errClient error
	settings.Client, noCluster, errClient = config.client(o.Version)
	if err := errors.Join(err, config.given.ByFlags(errClient)); err != nil {
		return err
	}
	live := newLiveConfig(o.File, o.Given, config)
	live.noCluster = noCluster
	settings.Registration.Adjust = live.adjust
	if config.Recording.RecentReviews > 0 {
		settings.Serving.MetricsRoutes = map[string]http.Handler{
			recording.RecentPath: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { live.recorder.Recent().ServeHTTP(w, r) }),
		}
	}
	app, err := live.app(o.Version)
	if err != nil { // the name is a constant, and the webhooks are set at run time
		return err
	}
	settings.Logger = config.Log.Logger(o.Log)
	tracer, shutdown, err := config.Tracing.Start(ctx, Name, o.Version, settings.Logger)
	if err != nil {
		return err
	}
	settings.Serving.Tracer = tracer
	err = app.RunUntilSignal(ctx, settings)
	err = config.given.ByFlags(err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
	defer cancel()
	if late := shutdown(ctx); late != nil {
		settings.Logger.Warn("the last traces were not sent", "error", late)
	}
	return err
}

// app returns the application that serves.
func (l *liveConfig) app(version string) (*frontdoor.App, error) {
	options := []frontdoor.Option{
		frontdoor.WithVersion(version),
		frontdoor.WithAuthentication(AuthenticationDelegated, delegatedAuthentication),
	}
	for _, build := range l.components() {
		options = append(options, frontdoor.WithComponent(build))
	}
	return frontdoor.New(Name, options...)
}

// AuthenticationDelegated authenticates callers through the API server.
const AuthenticationDelegated = "Delegated"

func delegatedAuthentication(env frontdoor.Environment) (frontdoor.Authentication, error) {
	client, err := kubernetes.NewForConfig(env.Client)
	if err != nil {
		return frontdoor.Authentication{}, err
	}
	authenticator, err := delegated.New(client)
	if err != nil {
		return frontdoor.Authentication{}, err
	}
	authenticator.WhenKnown(env.Changed)
	return frontdoor.Authentication{
		Authenticate: authenticator.Authenticate, Ready: authenticator.Ready, Run: authenticator.Run,
	}, nil
}

// Components returns the components of a server with this configuration.
func Components(file string, c *Config) []func(frontdoor.Environment) (frontdoor.Component, error) {
	return newLiveConfig(file, nil, c).components()
}

// components returns the components for [frontdoor.WithComponent], in build order.
func (l *liveConfig) components() []func(frontdoor.Environment) (frontdoor.Component, error) {
	out := []func(frontdoor.Environment) (frontdoor.Component, error){l.component, l.recording}
	for _, b := range l.builtins {
		out = append(out, b.component)
	}
	for _, b := range l.builtins {
		for _, c := range b.controllers {
			out = append(out, func(env frontdoor.Environment) (frontdoor.Component, error) { return c.component(b, env) })
		}
	}
	return out
}
