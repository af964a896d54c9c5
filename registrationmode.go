// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

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

// ValidateMode reports every mistake in how the webhooks are registered.
func (s *RegistrationSettings) ValidateMode() error {
	return errors.Join(s.ValidateOwner(), s.validateDirectory())
}

func (s *RegistrationSettings) validateDirectory() error {
	if s.Mode != registration.ModeManifest {
		if s.StaticManifestsDir != "" {
			return errors.New("--static-manifests-dir: of no use without --registration manifest")
		}
		return nil
	}
	var errs []error
	switch {
	case s.StaticManifestsDir == "":
		errs = append(errs, errors.New("--registration manifest needs --static-manifests-dir"))
	case !filepath.IsAbs(s.StaticManifestsDir):
		errs = append(errs, fmt.Errorf("--static-manifests-dir %q: write an absolute path", s.StaticManifestsDir))
	}
	if s.Service != "" {
		errs = append(errs, errors.New("--registration manifest needs --url: kube-apiserver takes no Service in static manifests"))
	}
	return errors.Join(errs...)
}

// registrar is who registers the webhooks.
type registrar interface {
	Run(ctx context.Context) error
	Notify()
}

// register makes the one that the mode asks for; nil if somebody else registers.
func (s *RegistrationSettings) register(clients kubernetes.Interface, options registration.Options) (registrar, error) {
	switch s.Mode {
	case registration.ModeAPI:
		recorder := &eventRecorder{sink: &events.EventSinkImpl{Interface: clients.EventsV1()}}
		options.Client, options.Events = clients.AdmissionregistrationV1(), recorder
		keeper, err := registration.NewKeeper(options)
		if err != nil {
			return nil, err
		}
		return recordingKeeper{keeper, recorder}, nil
	case registration.ModeManifest:
		return registration.NewFiles(registration.FilesOptions{
			Config: options.Config, Directory: s.StaticManifestsDir,
			Webhooks: options.Webhooks, CABundle: options.CABundle, Logger: options.Logger,
		})
	default:
		return nil, nil
	}
}

// eventRecorder records nothing before its keeper runs: a broadcaster works from
// its making on.
type eventRecorder struct {
	events.EventRecorder
	sink events.EventSink
}

// recordingKeeper is a keeper whose events are sent as long as it runs.
type recordingKeeper struct {
	*registration.Keeper
	recorder *eventRecorder
}

func (k recordingKeeper) Run(ctx context.Context) error {
	broadcaster := events.NewBroadcaster(k.recorder.sink)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	k.recorder.EventRecorder = broadcaster.NewRecorder(scheme.Scheme, registration.DefaultFieldManager)
	return k.Keeper.Run(ctx)
}

func completeModes(cmd *cobra.Command) { cli.CompleteChoices(cmd, "registration", registrationModes) }
