// SPDX-License-Identifier: Apache-2.0

package registration

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
)

// FilesOptions are what a [Files] works with.
type FilesOptions struct {
	// Config names the objects, without [StaticSuffix]. Its endpoint is a URL.
	Config Config
	// Directory is where the folders mutating and validating are, which are made if
	// they are missing: what staticManifestsDir of the two admission plugins names.
	Directory string
	// Webhooks and CABundle are those of [Options].
	Webhooks func() []admission.Webhook
	CABundle func() ([]byte, error)
	// Recheck is how often the files are compared with what they should be even if
	// nothing seems to have changed, 10 seconds if zero.
	Recheck time.Duration
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
}

func (o *FilesOptions) complete() error {
	errs := []error{o.Config.Validate()}
	if o.Config.Endpoint.Service != nil {
		errs = append(errs, errors.New("endpoint: kube-apiserver takes no service in static manifests; set a URL instead"))
	}
	if !filepath.IsAbs(o.Directory) { // as kube-apiserver wants it
		errs = append(errs, fmt.Errorf("directory %q: must be an absolute path", o.Directory))
	}
	if o.Webhooks == nil {
		errs = append(errs, errors.New("webhooks: the func that returns the definitions is missing"))
	}
	if o.CABundle == nil {
		errs = append(errs, errors.New("CA bundle: the func that returns it is missing"))
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

// Files writes webhook configurations as files that kube-apiserver reads, at its
// start and whenever they change (static admission manifests, KEP-5793), and keeps
// them true. A file appears and changes as a whole. Nobody can delete such a
// configuration through the API.
//
// Files without webhooks are deleted if their object carries [ManagedByLabel].
// Nothing is removed when it ends.
type Files struct {
	options FilesOptions
	notify  chan struct{}

	mu      sync.Mutex
	applied bool
	written []byte // the CA bundle
	err     error
}

// NewFiles reports every mistake in options at once. It writes nothing.
func NewFiles(options FilesOptions) (*Files, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("registration options: %w", err)
	}
	return &Files{options: options, notify: make(chan struct{}, 1)}, nil
}

// Notify says that Webhooks or CABundle return something new. It does not block.
func (f *Files) Notify() { signal(f.notify) }

// Registered returns nil once the files hold the configurations with the current CA
// bundle, otherwise why not. Whether kube-apiserver has read them it cannot know.
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

// Run keeps the files true until ctx ends, and then returns nil. Failures do not
// end it: they are logged, and tried again. It must be called once only.
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
				level = slog.LevelInfo // as at each start
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
	// kube-apiserver does not start without the folders.
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(f.options.Directory, folder), 0o755); err != nil {
			return err
		}
	}
	if caBundle, err = f.options.CABundle(); err != nil {
		return fmt.Errorf("the CA bundle is not known yet: %w", err)
	}
	files, err := staticFiles(f.options.Config, f.options.Webhooks(), caBundle)
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

// keepFile makes the file hold data, or, if that is nil, not be there. Nobody sees
// half of it: it is written under a name that kube-apiserver does not read.
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
	// It holds no secrets, and kube-apiserver may be another user.
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close())
	if err != nil {
		return false, err
	}
	return true, os.Rename(temporary.Name(), path)
}

// isOurs tells whether an object in a file carries our label.
func isOurs(data []byte) bool {
	var object metav1.PartialObjectMetadata
	return yaml.Unmarshal(data, &object) == nil && object.Labels[ManagedByLabel] == ManagedByValue
}
