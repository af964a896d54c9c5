// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// setting is a setting, identified by its flag. Errors of the library name the Go field,
// [ByFlags] replaces it with the flag.
type setting string

// String returns the Go field.
func (s setting) String() string { return fields[s] }

// fields are the fields of sallyport.Settings.
var fields = map[setting]string{
	"service": "Registration.Service", "url": "Registration.URL", "conversion-service": "Registration.ConversionService",
	"registration": "Registration.Mode", "static-manifests-dir": "Registration.StaticManifestsDir", "owner": "Registration.Owner",
	"configuration-name": "Registration.Name", "namespace-selector": "Registration.NamespaceSelector",
	"excluded-namespaces": "Registration.ExcludedNamespaces", "own-pods": "Registration.OwnPods",
	"failure-policy": "Registration.FailurePolicy", "webhook-timeout": "Registration.TimeoutSeconds", "review-versions": "Registration.ReviewVersions",

	"certificate-source": "Certificate.Source", "authority-secret": "Certificate.Secret", "certificate-lifetime": "Certificate.CertificateLifetime",
	"ca-lifetime": "Certificate.AuthorityLifetime", "ca-propagation": "Certificate.Propagation",
	"tls-cert-file": "Certificate.CertFile", "tls-private-key-file": "Certificate.KeyFile", "tls-ca-file": "Certificate.CAFile",

	"authentication": "Authentication.Mode", "client-ca-file": "Authentication.ClientCAFile", "client-common-names": "Authentication.ClientCommonNames",
	"metrics-authentication": "Authentication.Metrics", "private-paths": "Authentication.PrivatePaths", "metrics-bind-address": "Serving.MetricsBindAddress",

	"leader-elect-lease-duration": "LeaderElection.LeaseDuration", "leader-elect-renew-deadline": "LeaderElection.RenewDeadline",
	"leader-elect-retry-period": "LeaderElection.RetryPeriod",

	"webhooks": "Webhooks", "controllers": "Controllers", "kubeconfig": "Kubeconfig",
}

// A problem is an invalid setting.
type problem struct {
	format string
	args   []any // may contain settings
	error        // names Go fields
}

func problemf(format string, args ...any) error {
	return &problem{format, args, fmt.Errorf(format, args...)}
}

// Unwrap unwraps the error.
func (p *problem) Unwrap() error { return errors.Unwrap(p.error) }

// ByFlags names settings by their flags in all joined errors.
func ByFlags(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs := slices.Clone(joined.Unwrap())
		for i := range errs {
			errs[i] = ByFlags(errs[i])
		}
		return errors.Join(errs...)
	}
	p, ok := err.(*problem) //nolint:errorlint // the same
	if !ok {
		return err
	}
	args := slices.Clone(p.args)
	for i, arg := range args {
		if s, ok := arg.(setting); ok {
			args[i] = "--" + string(s)
		}
		if nested, ok := arg.(error); ok {
			args[i] = ByFlags(nested)
		}
	}
	return fmt.Errorf(p.format, args...)
}

// ValidateSelection is [cli.ValidateSelection] for the setting with that flag.
func ValidateSelection(flag string, selection, known []string) error {
	joined, ok := cli.ValidateSelection(flag, selection, known).(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var errs []error
	for _, err := range joined.Unwrap() {
		errs = append(errs, problemf("%s%s", setting(flag), strings.TrimPrefix(err.Error(), "--"+flag)))
	}
	return errors.Join(errs...)
}

// choice reports a value that is not one of the choices.
func choice(s setting, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return problemf("%s %q: choose %s", s, value, cli.OneOf(choices))
}
