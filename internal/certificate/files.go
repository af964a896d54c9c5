// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/certificate/follow"
)

// FilesOptions configure a [Files].
type FilesOptions struct {
	// CertFile is the path of the PEM-encoded certificate and its chain, KeyFile that of
	// its key. Required.
	CertFile, KeyFile string
	// CAFile is the path of the PEM-encoded CA bundle for clients to trust. Without it the
	// source has no bundle, and something else must set the caBundle.
	CAFile string
	// PollInterval is how often the files are read even without a notification of a change.
	// Default 10 s.
	PollInterval time.Duration
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Logger default is [slog.Default].
	Logger *slog.Logger
	// Registry registers the metrics, unless it is nil.
	Registry prometheus.Registerer
}

// Files is a [Source] that reloads files when they change. Files that do not match each
// other, as while they are being written, or that clients would reject now, do not replace
// valid ones, and are retried.
type Files struct {
	*current
	options FilesOptions
	loaded  fileContents
}

// fileContents are the contents of the files.
type fileContents struct{ certificate, key, ca []byte }

// NewFiles reads the files. Files that are missing, do not match or have expired are an
// error.
func NewFiles(options FilesOptions) (*Files, error) {
	var errs []error
	if options.CertFile == "" {
		errs = append(errs, errors.New("a file with the certificate is required"))
	}
	if options.KeyFile == "" {
		errs = append(errs, errors.New("a file with the key is required"))
	}
	if options.PollInterval < 0 {
		errs = append(errs, fmt.Errorf("poll interval %s must not be negative", options.PollInterval))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("certificate from files: %w", err)
	}
	if options.PollInterval == 0 {
		options.PollInterval = 10 * time.Second
	}
	f := &Files{current: newCurrent(options.Now, options.Logger), options: options}
	if err := f.load(); err != nil {
		return nil, err
	}
	if options.Registry != nil {
		if err := f.register(options.Registry); err != nil {
			return nil, fmt.Errorf("certificate from files: metrics: %w", err)
		}
	}
	return f, nil
}

// Run implements [Source].
func (f *Files) Run(ctx context.Context) error {
	follow.Files(ctx, f.log, "the certificate in files", f.options.PollInterval, func() { f.report(f.load()) },
		f.options.CertFile, f.options.KeyFile, f.options.CAFile)
	return nil
}

// load reads the files and serves them if they are new and valid.
func (f *Files) load() error {
	contents, err := f.read()
	if err != nil {
		return err
	}
	if bytes.Equal(contents.certificate, f.loaded.certificate) && bytes.Equal(contents.key, f.loaded.key) && bytes.Equal(contents.ca, f.loaded.ca) {
		return nil
	}
	certificate, bundle, err := contents.parse(f.now())
	if err != nil {
		return fmt.Errorf("certificate in %s, with key in %s: %w", f.options.CertFile, f.options.KeyFile, err)
	}
	f.loaded = contents
	f.set(certificate, bundle)
	return nil
}

func (f *Files) read() (contents fileContents, err error) {
	if contents.certificate, err = os.ReadFile(f.options.CertFile); err != nil {
		return contents, fmt.Errorf("read the certificate: %w", err)
	}
	if contents.key, err = os.ReadFile(f.options.KeyFile); err != nil {
		return contents, fmt.Errorf("read the key: %w", err)
	}
	if f.options.CAFile != "" {
		if contents.ca, err = os.ReadFile(f.options.CAFile); err != nil {
			return contents, fmt.Errorf("read the CA bundle: %w", err)
		}
	}
	return contents, nil
}

// parse returns the certificate, and the bundle if there is one. It is an error if they do
// not match or are not valid at the given time.
func (c fileContents) parse(at time.Time) (*tls.Certificate, []byte, error) {
	certificate, err := tls.X509KeyPair(c.certificate, c.key)
	if err != nil {
		return nil, nil, fmt.Errorf("read certificate and key: %w", err)
	}
	if err := validAt(certificate.Leaf, at); err != nil {
		return nil, nil, err
	}
	if c.ca == nil {
		return &certificate, nil, nil
	}
	var bundle []*x509.Certificate
	if bundle, err = parseBundle(c.ca); err != nil {
		return nil, nil, fmt.Errorf("read the CA bundle: %w", err)
	}
	if err := trusted(&certificate, bundle, at); err != nil {
		return nil, nil, err
	}
	return &certificate, encodeBundle(bundle), nil
}
