// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	internalcertificate "github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/serving/certificate"
)

// Options are the options of controller-runtime's server and further ones.
type Options struct {
	// Options mean what they mean to controller-runtime, with these differences: An expired
	// certificate is rejected like a missing one. The file of ClientCAName is reloaded, and a
	// caller without a certificate of that CA gets 401 instead of no connection, so that
	// probes of /readyz need none.
	//
	// TLSOpts may set GetCertificate, MinVersion, MaxVersion, CipherSuites, CurvePreferences,
	// ClientAuth, ClientCAs, and NextProtos without h2 (HTTP/2 is off anyway, unless Serving
	// switches it on). TLS 1.2 is the least. Any other field they set is reported as an
	// error instead of being ignored.
	//
	// Webhooks are registered in WebhookMux. Its other handlers are served within the same
	// limits: a body is read before its handler is called.
	webhook.Options

	// Certificate replaces the files in CertDir. The server runs it. Its CABundle must be
	// set in the webhook configurations. Nil means the files.
	Certificate certificate.Source

	// Serving has the limits. Nil means [ServingOptions], without a drain if Host is a loopback
	// address, as in tests: there is no other replica to call. The server sets address, port,
	// routes, checks and certificate. Without a registry, the metrics appear among
	// controller-runtime's own.
	Serving *serving.Options

	// Logger defaults to controller-runtime's logger.
	Logger *slog.Logger
}

// ServingOptions returns the default limits: those of package serving, without a port for
// metrics, which the manager serves, and with a drain of 15 s to 20 s. With 5 s more for the
// last requests, shutdown fits in the manager's default GracefulShutdownTimeout of 30 s.
func ServingOptions() serving.Options {
	options := serving.DefaultOptions()
	options.MetricsBindAddress = ""
	options.DrainTimeout = 20 * time.Second
	return options
}

// plan is the resolved options.
type plan struct {
	disabled bool // by a negative port
	serving  serving.Options
	source   certificate.Source // nil if files or TLSOpts provide the certificate
	files    internalcertificate.FilesOptions
	clientCA string // file; empty means that client certificates are not looked at
}

// plan applies the defaults. The error reports all problems.
func (o Options) plan() (plan, error) {
	var errs []error
	p := plan{disabled: o.Port < 0, serving: ServingOptions(), source: o.Certificate}
	if o.Serving != nil {
		p.serving = *o.Serving
	} else if isLoopback(o.Host) {
		p.serving.DrainMin, p.serving.DrainTimeout = 0, 0
	}
	if o.Logger != nil {
		p.serving.Logger = o.Logger
	}
	if p.serving.Logger == nil {
		p.serving.Logger = slog.New(logr.ToSlogHandler(controllerlog.Log.WithName("webhook")))
	}
	p.serving.BindAddress, p.serving.SecurePort = o.Host, int32(o.Port)
	if o.Port == 0 {
		p.serving.SecurePort = int32(webhook.DefaultPort)
	}

	config := &tls.Config{NextProtos: []string{"h2"}} // as controller-runtime passes them
	for _, set := range o.TLSOpts {
		set(config)
	}
	errs = append(errs, unsupported(config)...)
	p.serving.ConfigureTLS = configureTLS(config, p.serving.ConfigureTLS)
	p.serving.HTTP2 = p.serving.HTTP2 && slices.Contains(config.NextProtos, "h2")

	directory := o.CertDir
	if directory == "" {
		directory = filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	}
	p.files = internalcertificate.FilesOptions{
		CertFile: filepath.Join(directory, orElse(o.CertName, "tls.crt")),
		KeyFile:  filepath.Join(directory, orElse(o.KeyName, "tls.key")),
		Logger:   p.serving.Logger,
	}
	if o.ClientCAName != "" {
		p.clientCA = filepath.Join(directory, o.ClientCAName)
		if p.serving.Authenticate != nil {
			errs = append(errs, errors.New("ClientCAName: Serving has Authenticate, too: choose one"))
		}
	}
	switch {
	case config.GetCertificate != nil && o.Certificate != nil:
		errs = append(errs, errors.New("certificate: TLSOpts set GetCertificate, and Certificate is there too: choose one"))
	case config.GetCertificate != nil:
		p.serving.GetCertificate = config.GetCertificate
	default:
		p.serving.GetCertificate = nil
	}
	if !p.disabled {
		errs = append(errs, setting.Join(p.serving.Settings.Validate(field.NewPath("serving"))))
	}
	if err := errors.Join(errs...); err != nil {
		return plan{}, fmt.Errorf("webhook server: %w", err)
	}
	return p, nil
}

func orElse(value, otherwise string) string {
	if value != "" {
		return value
	}
	return otherwise
}

// unsupported reports fields set by TLSOpts that the server would ignore.
func unsupported(config *tls.Config) []error {
	var errs []error
	value := reflect.ValueOf(config).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		switch {
		case !field.IsExported(), value.Field(i).IsZero():
		case slices.Contains(supported, field.Name):
		default:
			errs = append(errs, fmt.Errorf("TLSOpts: %s is not supported: set only %s", field.Name, strings.Join(supported, ", ")))
		}
	}
	if config.MaxVersion != 0 && config.MaxVersion < tls.VersionTLS12 {
		errs = append(errs, errors.New("TLSOpts: MaxVersion: TLS 1.2 is the least"))
	}
	return errs
}

// supported are the fields of a tls.Config that TLSOpts may set.
var supported = []string{"GetCertificate", "NextProtos", "MinVersion", "MaxVersion", "CipherSuites", "CurvePreferences", "ClientAuth", "ClientCAs"}

// configureTLS returns a func that calls other and then sets versions, ciphers, curves and how
// clients authenticate from TLSOpts.
func configureTLS(from *tls.Config, other func(*tls.Config)) func(*tls.Config) {
	return func(to *tls.Config) {
		if other != nil {
			other(to)
		}
		to.MinVersion = max(to.MinVersion, from.MinVersion)
		if from.MaxVersion != 0 {
			to.MaxVersion = from.MaxVersion
		}
		if from.CipherSuites != nil {
			to.CipherSuites = from.CipherSuites
		}
		if from.CurvePreferences != nil {
			to.CurvePreferences = from.CurvePreferences
		}
		to.ClientAuth = max(to.ClientAuth, from.ClientAuth)
		if from.ClientCAs != nil {
			to.ClientCAs = from.ClientCAs
		}
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
