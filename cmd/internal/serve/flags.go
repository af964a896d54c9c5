// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// Flag is a flag of serve that overrides a field of the configuration.
type Flag struct {
	Name, Short string
	// Field is the path in the file.
	Field string
	// Group is the title in the help.
	Group string
	// Usage is in the format of [pflag.UnquoteUsage].
	Usage string
	// File and Folder are set if the value is the path of one.
	File, Folder bool

	bind func(*Config) any // a pointer to the field, or a [pflag.Value]
}

// Choices are the values that the flag accepts, or none if it accepts any.
func (f *Flag) Choices() []string {
	if f.Field == "webhooks" {
		return Names()
	}
	if f.Field == "controllers" {
		return controllerNames()
	}
	if f.Field == "authentication.privatePaths" {
		return []string{privatePathsAuto, "true", "false"}
	}
	return choices[f.Field]
}

// Flags are the flags of serve. All other fields can only be set in the file.
func Flags() []Flag { return slices.Clone(flags) }

const (
	groupAPIServer = "API server"
	groupWebhooks  = "Webhooks"
	groupCert      = "Certificate"
	groupElection  = "Leader election"
	groupCallers   = "Callers"
	groupAddresses = "Addresses"
	groupLog       = "Log"
)

var flags = []Flag{
	{Name: "kubeconfig", Field: "kubeconfig", Group: groupAPIServer, File: true, bind: func(c *Config) any { return &c.Kubeconfig },
		Usage: "path of the kubeconfig `file`; defaults to the pod's service account; not needed with --registration none and webhooks that read nothing from the cluster"},
	{Name: "registration", Field: "registration.mode", Group: groupAPIServer, bind: func(c *Config) any { return &c.Registration.Mode },
		Usage: "`mode` of registration: the server writes the webhook configurations through the API (api) or as static manifests for kube-apiserver (manifest), or does not write them (none)"},
	{Name: "static-manifests-dir", Field: "registration.staticManifestsDir", Group: groupAPIServer, Folder: true, bind: func(c *Config) any { return &c.Registration.StaticManifestsDir },
		Usage: "with --registration manifest: `directory` for static admission manifests; set staticManifestsDir of kube-apiserver's two webhook plugins to its subdirectories mutating and validating"},
	{Name: "owner", Field: "registration.owner", Group: groupAPIServer, bind: func(c *Config) any { return &c.Registration.Owner },
		Usage: "with --registration api: `object` that owns the webhook configurations, clusterrole/NAME: they are garbage-collected when it is deleted; empty for none"},
	{Name: "service", Field: "registration.service", Group: groupAPIServer, bind: func(c *Config) any { return &c.Registration.Service },
		Usage: "the Service through which the API server calls a server inside the cluster, `namespace/name[:port]`"},
	{Name: "url", Field: "registration.url", Group: groupAPIServer, bind: func(c *Config) any { return &c.Registration.URL },
		Usage: "`url` where the API server calls a server outside the cluster, for example https://127.0.0.1:9443"},

	{Name: "configuration-name", Field: "registration.name", Group: groupWebhooks, bind: func(c *Config) any { return &c.Registration.Name },
		Usage: "`name` of the webhook configurations; the API server calls mutating webhook configurations in the order of their names"},
	{Name: "namespace-selector", Field: "registration.namespaceSelector", Group: groupWebhooks, bind: func(c *Config) any { return &c.Registration.NamespaceSelector },
		Usage: "label `selector` of the namespaces to call the webhooks for, for example app.kubernetes.io/part-of=kubeflow-profile; empty for all"},
	{Name: "failure-policy", Field: "registration.failurePolicy", Group: groupWebhooks, bind: func(c *Config) any { return &c.Registration.FailurePolicy },
		Usage: "`policy` if calling a webhook fails: reject the request (Fail) or admit the object unchanged (Ignore)"},
	{Name: "webhooks", Field: "webhooks", Group: groupWebhooks, bind: func(c *Config) any { return &selection{entries: &c.Webhooks} },
		Usage: "`names` of ready-made webhooks, see 'sallyport webhooks list': foo enables foo, -foo disables it, * enables all that are not named"},
	{Name: "controllers", Field: "controllers", Group: groupWebhooks, bind: func(c *Config) any { return &c.Controllers },
		Usage: "`names` of controllers of the enabled webhooks: foo enables foo, -foo disables it, * enables all that are not named, except poddefault-reports; empty for none"},

	{Name: "certificate-source", Field: "certificate.source", Group: groupCert, bind: func(c *Config) any { return &c.Certificate.Source },
		Usage: "`source` of the serving certificate: a self-managed authority that all replicas share through a Secret (authority), or files (files)"},
	{Name: "authority-secret", Field: "certificate.authoritySecret", Group: groupCert, bind: func(c *Config) any { return &c.Certificate.AuthoritySecret },
		Usage: "with --certificate-source authority: the Secret, `namespace/name` (default sallyport-authority in the namespace of --service; with --url, an authority in memory)"},
	{Name: "tls-cert-file", Field: "certificate.certFile", Group: groupCert, File: true, bind: func(c *Config) any { return &c.Certificate.CertFile },
		Usage: "with --certificate-source files: `file` with the PEM-encoded certificate and its chain; reloaded when it changes"},
	{Name: "tls-private-key-file", Field: "certificate.privateKeyFile", Group: groupCert, File: true, bind: func(c *Config) any { return &c.Certificate.PrivateKeyFile },
		Usage: "with --certificate-source files: `file` with the PEM-encoded private key"},
	{Name: "tls-ca-file", Field: "certificate.caFile", Group: groupCert, File: true, bind: func(c *Config) any { return &c.Certificate.CAFile },
		Usage: "with --certificate-source files: `file` with the PEM-encoded CA bundle for the API server to trust; empty if something else writes the caBundle"},

	{Name: "leader-elect", Field: "leaderElection.leaderElect", Group: groupElection, bind: func(c *Config) any { return &c.LeaderElection.LeaderElect },
		Usage: "make one replica at a time run the controllers, write the webhook configurations and rotate the authority; otherwise every replica does"},

	{Name: "authentication", Field: "authentication.mode", Group: groupCallers, bind: func(c *Config) any { return &c.Authentication.Mode },
		Usage: "`mode` of authentication of callers of admission webhooks: none, client-ca or delegated; with client-ca or delegated, the API server's AdmissionConfiguration must name the credentials to present"},
	{Name: "client-ca-file", Field: "authentication.clientCAFile", Group: groupCallers, File: true, bind: func(c *Config) any { return &c.Authentication.ClientCAFile },
		Usage: "with --authentication client-ca: `file` with the PEM-encoded CA bundle that verifies client certificates; reloaded when it changes"},
	{Name: "metrics-authentication", Field: "authentication.metrics", Group: groupCallers, bind: func(c *Config) any { return &c.Authentication.Metrics },
		Usage: "`mode` of authentication of readers of /metrics: none or delegated; with delegated, the port serves TLS with the certificate of the webhooks, and probes still need no credentials"},
	{Name: "private-paths", Field: "authentication.privatePaths", Group: groupCallers, bind: func(c *Config) any { return &privatePaths{&c.Authentication.PrivatePaths} },
		Usage: "`mode` of private paths, which have an unguessable segment to protect the webhooks where the API server cannot be configured to authenticate itself: " +
			"auto, true or false; auto uses them if all replicas share an authority and register themselves, unless paths are already registered without the segment"},

	{Name: "bind-address", Field: "serving.bindAddress", Group: groupAddresses, bind: func(c *Config) any { return &c.Serving.BindAddress },
		Usage: "`address` to serve webhooks on; empty for all addresses"},
	{Name: "secure-port", Field: "serving.securePort", Group: groupAddresses, bind: func(c *Config) any { return &c.Serving.SecurePort },
		Usage: "`port` to serve webhooks on with TLS; 0 picks a free port"},
	{Name: "metrics-bind-address", Field: "serving.metricsBindAddress", Group: groupAddresses, bind: func(c *Config) any { return &c.Serving.MetricsBindAddress },
		Usage: "`host:port` to serve /metrics, /livez and /readyz on, for example 127.0.0.1:8080 for this host or pod only; plain HTTP unless --metrics-authentication is delegated; 0 disables it"},

	{Name: "log-level", Field: "log.level", Group: groupLog, bind: func(c *Config) any { return &c.Log.Level },
		Usage: "minimum `level` of messages to log: debug, info, warn or error"},
	{Name: "log-format", Field: "log.format", Group: groupLog, bind: func(c *Config) any { return &c.Log.Format },
		Usage: "`format` of the log: text or json"},
	{Name: "verbosity", Short: "v", Field: "log.verbosity", Group: groupLog, bind: func(c *Config) any { return &c.Log.Verbosity },
		Usage: "log `verbosity` of Kubernetes' client libraries, 0 to 10; above 0 implies --log-level debug"},
}

// fieldAnnotation of a flag is the path of the field it sets.
const fieldAnnotation = "sallyport.io/field"

// AddFlag binds a flag to a field of the configuration. The field's value is the default.
func AddFlag(to *pflag.FlagSet, f Flag, c *Config) {
	switch field := f.bind(c).(type) {
	case *string:
		to.StringVarP(field, f.Name, f.Short, *field, f.Usage)
	case *int:
		to.IntVarP(field, f.Name, f.Short, *field, f.Usage)
	case *bool:
		to.BoolVarP(field, f.Name, f.Short, *field, f.Usage)
	case *[]string:
		to.StringSliceVarP(field, f.Name, f.Short, *field, f.Usage)
	case pflag.Value:
		to.VarP(field, f.Name, f.Short, f.Usage)
		if _, ok := field.(interface{ IsBoolFlag() bool }); ok {
			to.Lookup(f.Name).NoOptDefVal = "true"
		}
	}
	_ = to.SetAnnotation(f.Name, fieldAnnotation, []string{f.Field}) // the flag exists
}

// override applies the flags that were set on the command line.
func (c *Config) override(given *pflag.FlagSet) error {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, f := range flags {
		AddFlag(own, f, c)
	}
	c.set = map[string]bool{}
	var errs []error
	given.Visit(func(flag *pflag.Flag) {
		field := flag.Annotations[fieldAnnotation]
		if len(field) == 0 {
			return
		}
		c.set[field[0]] = true
		to := own.Lookup(flag.Name).Value
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			errs = append(errs, to.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		errs = append(errs, to.Set(flag.Value.String()))
	})
	return errors.Join(errs...)
}

// Given returns the flags of a command that set fields, as arguments of serve.
func Given(flags *pflag.FlagSet) []string {
	return cli.Given(flags, func(flag *pflag.Flag) bool { return len(flag.Annotations[fieldAnnotation]) > 0 })
}

// selection enables the entries that --webhooks names, and no others.
type selection struct {
	entries *[]configv1alpha1.Webhook
	names   []string
	given   bool
}

// Set implements [pflag.Value]. Repeating the flag appends to its list.
func (s *selection) Set(text string) error {
	var names []string
	if s.given {
		names = s.names
	}
	if text != "" {
		names = append(names, strings.Split(text, ",")...)
	}
	return s.Replace(names)
}

// Replace implements [pflag.SliceValue].
func (s *selection) Replace(names []string) error {
	if err := hostedByOthers(names); err != nil {
		return err
	}
	if err := cli.ValidateSelection("webhooks", names, Names()); err != nil {
		return err
	}
	s.names, s.given = names, true
	*s.entries = slices.Clone(*s.entries)
	for _, name := range Names() {
		enabled := cli.Selects(names, name)
		i := slices.IndexFunc(*s.entries, func(w configv1alpha1.Webhook) bool { return w.Name == name })
		switch {
		case i >= 0:
			(*s.entries)[i].Enabled = &enabled
		case enabled:
			*s.entries = append(*s.entries, configv1alpha1.Webhook{Name: name})
		}
	}
	return nil
}

// Append implements [pflag.SliceValue].
func (s *selection) Append(name string) error { return s.Replace(append(s.GetSlice(), name)) }

// GetSlice implements [pflag.SliceValue].
func (s *selection) GetSlice() []string {
	if s.given {
		return s.names
	}
	var names []string
	for _, w := range *s.entries {
		if w.Enabled == nil || *w.Enabled {
			names = append(names, w.Name)
		}
	}
	return names
}

// Type implements [pflag.Value].
func (s *selection) Type() string { return "stringSlice" }

func (s *selection) String() string { return "[" + strings.Join(s.GetSlice(), ",") + "]" }

// Select enables the named ready-made webhooks and disables all others.
func (c *Config) Select(names ...string) error {
	return (&selection{entries: &c.Webhooks}).Replace(names)
}

// privatePathsAuto stands for an absent field.
const privatePathsAuto = "auto"

// privatePaths is the value of a flag for an optional bool.
type privatePaths struct{ field **bool }

// Set implements [pflag.Value].
func (p *privatePaths) Set(text string) error {
	if text == privatePathsAuto {
		*p.field = nil
		return nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("choose %s", cli.OneOf([]string{privatePathsAuto, "true", "false"}))
	}
	*p.field = &value
	return nil
}

// Type implements [pflag.Value].
func (p *privatePaths) Type() string { return "string" }

// IsBoolFlag permits the flag without a value.
func (p *privatePaths) IsBoolFlag() bool { return true }

func (p *privatePaths) String() string {
	if p.field == nil || *p.field == nil {
		return privatePathsAuto
	}
	return strconv.FormatBool(**p.field)
}
