// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/registration"
)

const (
	sourceAuthority = "authority"
	sourceFiles     = "files"
	// authorityName is the Secret of the authority if no other is named.
	authorityName = "sallyport-authority"
)

var certificateSources = []string{sourceAuthority, sourceFiles}

// certificateOptions say where the serving certificate comes from.
type certificateOptions struct {
	source                    string
	certFile, keyFile, caFile string
	secret                    string
}

func (o *certificateOptions) addFlags(cmd *cobra.Command) {
	o.addSourceFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.certFile, "tls-cert-file", "", "with --certificate-source files: `file` with the certificate and its chain, PEM; read again when it changes")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "with --certificate-source files: `file` with the key, PEM")
	flags.StringVar(&o.caFile, "tls-ca-file", "", "with --certificate-source files: `file` with what the API server shall trust, PEM; empty if somebody else writes the caBundle")
	completeFiles(cmd, "tls-cert-file")
	completeFiles(cmd, "tls-private-key-file")
	completeFiles(cmd, "tls-ca-file")
}

// addSourceFlags adds the flags on which the rights of the server depend.
func (o *certificateOptions) addSourceFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.source, "certificate-source", sourceAuthority,
		"`source` of the serving certificate: an authority of its own that all replicas share in a Secret (authority), or files (files)")
	flags.StringVar(&o.secret, "authority-secret", "",
		"with --certificate-source authority: the Secret, `namespace/name` (default "+authorityName+" in the namespace of --service; with --url an authority in memory)")
	completeChoices(cmd, "certificate-source", certificateSources)
}

// validate reports every mistake at once.
func (o *certificateOptions) validate() error {
	errs := []error{choice("certificate-source", o.source, certificateSources)}
	var missing, useless []string
	for _, file := range []struct{ flag, value string }{
		{"--tls-cert-file", o.certFile}, {"--tls-private-key-file", o.keyFile}, {"--tls-ca-file", o.caFile},
	} {
		switch {
		case o.source == sourceFiles && file.value == "" && file.flag != "--tls-ca-file":
			missing = append(missing, file.flag)
		case o.source == sourceAuthority && file.value != "":
			useless = append(useless, file.flag)
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("--certificate-source files needs %s", strings.Join(missing, " and ")))
	}
	if len(useless) > 0 {
		errs = append(errs, fmt.Errorf("%s: of no use without --certificate-source files", strings.Join(useless, ", ")))
	}
	if o.source == sourceFiles && o.secret != "" {
		errs = append(errs, errors.New("--authority-secret: of no use with --certificate-source files"))
	}
	return errors.Join(append(errs, o.validateSecret())...)
}

func (o *certificateOptions) validateSecret() error {
	if o.secret == "" {
		return nil
	}
	namespace, name, ok := strings.Cut(o.secret, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("--authority-secret %q: write NAMESPACE/NAME, for example sallyport-system/%s", o.secret, authorityName)
	}
	return nil
}

func (o *certificateOptions) open(clients kubernetes.Interface, endpoint registration.Endpoint, logger *slog.Logger) (certificate.Source, error) {
	if o.source == sourceFiles {
		return certificate.NewFiles(certificate.FilesOptions{CertFile: o.certFile, KeyFile: o.keyFile, CAFile: o.caFile, Logger: logger})
	}
	options := certificate.AuthorityOptions{Logger: logger}
	options.DNSNames, options.IPAddresses = hosts(endpoint)
	if namespace, name, ok := o.authoritySecret(endpoint); ok {
		options.Secrets, options.SecretName = clients.CoreV1().Secrets(namespace), name
	} else {
		logger.Warn("the certificate authority is kept in memory and will be another one after a restart; name a Secret with --authority-secret")
	}
	return certificate.NewAuthority(options)
}

// authoritySecret is where the authority is kept, if there is one and it is kept
// anywhere.
func (o *certificateOptions) authoritySecret(endpoint registration.Endpoint) (namespace, name string, ok bool) {
	switch {
	case o.source == sourceFiles:
		return "", "", false
	case o.secret != "":
		return strings.Cut(o.secret, "/")
	case endpoint.Service != nil:
		return endpoint.Service.Namespace, authorityName, true
	default:
		return "", "", false
	}
}
