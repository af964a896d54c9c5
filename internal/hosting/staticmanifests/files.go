// SPDX-License-Identifier: Apache-2.0

package staticmanifests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// Options are the options of a [Files].
type Options struct {
	// Config names the objects, without the suffix .static.k8s.io. Its endpoint is a URL.
	Config registration.Config
	// Directory contains the subdirectories mutating and validating, which are created if
	// missing: set staticManifestsDir of the two admission plugins to them.
	Directory string
	// Webhooks and CABundle are as in [registration.Options].
	Webhooks func() []admission.Webhook
	CABundle func() ([]byte, error)
	// Recheck is how often the files are checked without a notification. Default 10
	// seconds.
	Recheck time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

func (o *Options) complete() error {
	errs := []error{o.Config.Validate()}
	if o.Config.Endpoint.Service != nil {
		errs = append(errs, errors.New("endpoint: kube-apiserver does not allow a service in static manifests; set a URL instead"))
	}
	if !filepath.IsAbs(o.Directory) { // as kube-apiserver requires
		errs = append(errs, fmt.Errorf("directory %q: must be an absolute path", o.Directory))
	}
	if o.Webhooks == nil {
		errs = append(errs, errors.New("option Webhooks is required"))
	}
	if o.CABundle == nil {
		errs = append(errs, errors.New("option CABundle is required"))
	}
	if o.Recheck < 0 {
		errs = append(errs, errors.New("recheck must not be negative"))
	}
	if o.Recheck == 0 {
		o.Recheck = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return errors.Join(errs...)
}

// Files writes webhook configurations to files that kube-apiserver reads at startup and
// whenever they change (static admission manifests, KEP-5793), and reconciles them. Files
// are replaced atomically. Such a configuration cannot be deleted through the API.
//
// Files without webhooks are deleted if their object has [registration.ManagedByLabel]. Nothing is
// removed when it stops.
type Files struct {
	options Options
	notify  chan struct{}

	mu      sync.Mutex
	applied bool
	written []byte // the CA bundle
	err     error
}

// New reports all problems of options. It writes nothing.
func New(options Options) (*Files, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("registration options: %w", err)
	}
	return &Files{options: options, notify: make(chan struct{}, 1)}, nil
}

// Notify signals that the result of Webhooks or CABundle has changed. It does not block.
func (f *Files) Notify() {
	select {
	case f.notify <- struct{}{}:
	default: // one is already queued
	}
}

// Registered returns nil once the files contain the configurations with the current CA
// bundle, and otherwise the reason. It cannot know whether kube-apiserver has read them.
func (f *Files) Registered() error {
	caBundle, err := f.options.CABundle()
	if err != nil {
		return fmt.Errorf("the CA bundle is not known yet: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return fmt.Errorf("static manifests are not written: %w", f.err)
	case !f.applied:
		return errors.New("static manifests are not written yet")
	case !bytes.Equal(caBundle, f.written):
		return errors.New("static manifests still have an older CA bundle")
	}
	return nil
}

// Run reconciles the files until ctx ends, and then returns nil. Failures are logged and
// retried. It must be called only once.
func (f *Files) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.notify:
		case <-timer.C:
		}
		err := f.pass()
		if err != nil && err.Error() != reported {
			level := slog.LevelWarn
			if _, starting := f.options.CABundle(); starting != nil {
				level = slog.LevelInfo // expected at startup
			}
			f.options.Logger.Log(ctx, level, "static manifests cannot be written, will try again", "error", err)
		}
		reported = ""
		if err != nil {
			reported = err.Error()
		}
		timer.Reset(f.options.Recheck)
	}
}

func (f *Files) pass() (err error) {
	var caBundle []byte
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err = err; err == nil {
			f.applied, f.written = true, bytes.Clone(caBundle)
		}
	}()
	// kube-apiserver does not start without the directories.
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(f.options.Directory, folder), 0o755); err != nil {
			return err
		}
	}
	if caBundle, err = f.options.CABundle(); err != nil {
		return fmt.Errorf("the CA bundle is not known yet: %w", err)
	}
	files, err := contents(f.options.Config, f.options.Webhooks(), caBundle)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(f.options.Directory, name)
		changed, err := keepFile(path, files[name])
		errs = append(errs, err)
		if changed {
			f.options.Logger.Info("static manifest written or removed", "file", path)
		}
	}
	return errors.Join(errs...)
}

// keepFile writes data to the file, or deletes it if data is nil. It is written atomically,
// through a temporary name that kube-apiserver does not read.
func keepFile(path string, data []byte) (changed bool, err error) {
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if data == nil {
			return false, nil
		}
	case err != nil:
		return false, err
	case data == nil:
		if !isOurs(have) {
			return false, nil
		}
		return true, os.Remove(path)
	case bytes.Equal(have, data):
		return false, nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".sallyport-*.tmp")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(data)
	// It contains no secrets, and kube-apiserver may run as another user.
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close())
	if err != nil {
		return false, err
	}
	return true, os.Rename(temporary.Name(), path)
}

// isOurs reports whether the object in a file has our label.
func isOurs(data []byte) bool {
	var object metav1.PartialObjectMetadata
	return yaml.Unmarshal(data, &object) == nil && object.Labels[registration.ManagedByLabel] == registration.ManagedByValue
}
