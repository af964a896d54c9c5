// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting/logging"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/internal/wire/tlsname"
)

// The titles of flags in the help of serve, which has a flag only for what differs between
// installations. The other settings are in its file.
const (
	groupAPIServer = "API server"
	groupWebhooks  = "Webhooks"
	groupCert      = "Certificate"
	groupElection  = "Leader election"
	groupCallers   = "Callers"
	groupAddresses = "Addresses"
	groupLog       = "Log"
)

// Flags are the flags of all settings, in the order of the help, for an application of that name
// and with these modes of authentication. No other table has a flag of a setting.
func Flags(name string, modes []string) []setting.Flag {
	metrics := metricsModes(modes)
	return []setting.Flag{
		{Name: "kubeconfig", Field: "kubeconfig", Group: groupAPIServer, File: true,
			Usage: "path of the kubeconfig `file`; empty for the service account of the pod"},
		{Name: "registration", Field: "registration.mode", Group: groupAPIServer, Choices: registrationModes,
			Usage: "`mode` of registration: the server writes the webhook configurations through the API (API) or as static manifests for kube-apiserver (Manifest), or does not write them (None)"},
		{Name: "static-manifests-dir", Field: "registration.staticManifestsDir", Group: groupAPIServer, Folder: true,
			Usage: "with --registration Manifest: `directory` of static admission manifests to write; set staticManifestsDir of kube-apiserver's two webhook plugins to its subdirectories mutating and validating"},
		{Name: "owner", Field: "registration.owner", Group: groupAPIServer,
			Usage: "with --registration API: `object` that owns the webhook configurations, clusterrole/NAME: they are garbage-collected when it is deleted; empty for none"},
		{Name: "service", Field: "registration.service", Group: groupAPIServer, Value: ServiceFlag,
			Usage: "the Service through which the API server calls a server inside the cluster, `namespace/name[:port]`"},
		{Name: "url", Field: "registration.url", Group: groupAPIServer,
			Usage: "`url` where the API server calls a server outside the cluster, for example https://127.0.0.1:9443"},
		{Name: "conversion-service", Field: "registration.conversionService", Value: ServiceFlag,
			Usage: "the Service through which the API server calls the converters, `namespace/name[:port]`, with publishNotReadyAddresses: true, " +
				"since the server may need converted objects to become ready; defaults to --service"},

		{Name: "configuration-name", Field: "registration.name", Group: groupWebhooks,
			Usage: "`name` of the webhook configurations; the API server calls mutating webhook configurations in the order of their names"},
		{Name: "namespace-selector", Field: "registration.namespaceSelector", Group: groupWebhooks, Value: selectorFlag,
			Usage: "label `selector` of the namespaces to call the webhooks for, for example app.kubernetes.io/part-of=kubeflow-profile; empty for all"},
		{Name: "excluded-namespaces", Field: "registration.excludedNamespaces",
			Usage: "`namespaces` for which the webhooks are never called; that of --service is excluded too, unless it is shared"},
		{Name: "own-pods", Field: "registration.ownPods",
			Usage: "`label` of the server's own pods, key=value, for which webhooks for pods are not called if the namespace of --service is shared; empty if they have none"},
		{Name: "shared-namespace", Field: "registration.sharedNamespace",
			Usage: "other workloads run in the namespace of --service: exclude only the pods of --own-pods, not the namespace"},
		{Name: "allow-wedge", Field: "registration.allowWedge",
			Usage: "permit webhooks that can block the whole cluster while the server is down, for this `reason`"},
		{Name: "failure-policy", Field: "registration.failurePolicy", Group: groupWebhooks, Choices: failurePolicies,
			Usage: "`policy` if calling a webhook fails: reject the request (Fail) or admit the object unchanged (Ignore)"},
		{Name: "webhook-timeout", Field: "registration.timeoutSeconds",
			Usage: "`seconds` that the API server waits for a webhook to respond, 1 to 30"},
		{Name: "review-versions", Field: "registration.reviewVersions", Choices: reviewversion.All(),
			Usage: "accepted `versions` of AdmissionReview, in order of preference"},
		{Name: "webhooks", Field: "webhooks", Group: groupWebhooks,
			Usage: "`names` of the webhooks to serve: foo serves foo, -foo does not, * serves all that are not named; empty for none"},
		{Name: "controllers", Field: "controllers", Group: groupWebhooks,
			Usage: "`names` of the controllers to run: foo runs foo, -foo does not, * runs all that are not named; empty for none"},

		{Name: "certificate-source", Field: "certificate.source", Group: groupCert, Choices: certificateSources,
			Usage: "`source` of the serving certificate: a self-managed authority that all replicas share through a Secret (Authority), or files (Files)"},
		{Name: "authority-secret", Field: "certificate.authoritySecret", Group: groupCert,
			Usage: "with --certificate-source Authority: the Secret of the authority, `namespace/name` (default " + certificate.DefaultSettings(name).DefaultSecret + " in the namespace of --service; with --url, an authority in memory)"},
		{Name: "certificate-lifetime", Field: "certificate.lifetime",
			Usage: "with --certificate-source Authority: `time` a serving certificate is valid; it is renewed after two thirds"},
		{Name: "ca-lifetime", Field: "certificate.caLifetime",
			Usage: "with --certificate-source Authority: `time` a new CA certificate is valid; it is replaced after two thirds"},
		{Name: "ca-propagation", Field: "certificate.caPropagation",
			Usage: "with --certificate-source Authority: `time` after which all replicas and API servers have observed a change of the CA bundle; a rotation waits that long twice"},
		{Name: "tls-cert-file", Field: "certificate.certFile", Group: groupCert, File: true,
			Usage: "with --certificate-source Files: `file` with the PEM-encoded serving certificate and its chain; reloaded when it changes"},
		{Name: "tls-private-key-file", Field: "certificate.privateKeyFile", Group: groupCert, File: true,
			Usage: "with --certificate-source Files: `file` with the PEM-encoded private key"},
		{Name: "tls-ca-file", Field: "certificate.caFile", Group: groupCert, File: true,
			Usage: "with --certificate-source Files: `file` with the PEM-encoded CA bundle for the API server to trust; empty if something else writes the caBundle"},

		{Name: "leader-elect", Field: "leaderElection.leaderElect", Group: groupElection,
			Usage: "make one replica at a time run the controllers, write the webhook configurations and rotate the authority; otherwise every replica does"},
		{Name: "leader-elect-lease-duration", Field: "leaderElection.leaseDuration",
			Usage: "`time` that other replicas wait before they take over from a leader that stopped renewing its lease"},
		{Name: "leader-elect-renew-deadline", Field: "leaderElection.renewDeadline",
			Usage: "`time` that a leader retries renewing its lease before it gives up leadership"},
		{Name: "leader-elect-retry-period", Field: "leaderElection.retryPeriod",
			Usage: "`time` between two attempts to acquire or renew the lease"},
		{Name: "leader-election-namespace", Field: "leaderElection.namespace",
			Usage: "`namespace` of the lease of the controllers; defaults to that of the pod"},

		{Name: "authentication", Field: "authentication.mode", Group: groupCallers, Choices: modes,
			Usage: "`mode` of authentication of callers of admission webhooks: " + cli.OneOf(modes) + "; with ClientCA or Delegated, the API server's AdmissionConfiguration must name the credentials to present"},
		{Name: "client-ca-file", Field: "authentication.clientCAFile", Group: groupCallers, File: true,
			Usage: "with --authentication ClientCA: `file` with the PEM-encoded CA bundle that verifies client certificates; reloaded when it changes"},
		{Name: "client-common-names", Field: "authentication.clientCommonNames",
			Usage: "with --authentication ClientCA: accepted common `names` of client certificates; if empty, any certificate signed by the CA is accepted"},
		{Name: "metrics-authentication", Field: "authentication.metrics", Group: groupCallers, Choices: metrics,
			Usage: "`mode` of authentication of readers of /metrics: " + cli.OneOf(metrics) + "; with Delegated, the port serves TLS with the certificate of the webhooks, and probes still need no credentials"},
		{Name: "private-paths", Field: "authentication.privatePaths", Group: groupCallers, Choices: privatePathsChoices, Optional: PrivatePathsAlways,
			Usage: "`mode` of private paths, which have an unguessable segment to protect the webhooks where the API server cannot be configured to authenticate itself: " +
				cli.OneOf(privatePathsChoices) + "; Auto uses them if all replicas share an authority and register themselves, unless paths are already registered without the segment"},

		{Name: "bind-address", Field: "serving.bindAddress", Group: groupAddresses,
			Usage: "`address` to serve webhooks on; empty for all addresses"},
		{Name: "secure-port", Field: "serving.securePort", Group: groupAddresses,
			Usage: "`port` to serve webhooks on with TLS; 0 picks a free port"},
		{Name: "metrics-bind-address", Field: "serving.metricsBindAddress", Group: groupAddresses,
			Usage: "`host:port` to serve /metrics, /livez and /readyz on, for example 127.0.0.1:8080 for this host or pod only; plain HTTP unless --metrics-authentication is set; 0 disables it"},
		{Name: "tls-min-version", Field: "serving.tlsMinVersion", Choices: tlsname.Versions(),
			Usage: "minimum `version` of TLS: " + strings.Join(tlsname.Versions(), ", ") + "; defaults to VersionTLS12"},
		{Name: "tls-cipher-suites", Field: "serving.tlsCipherSuites", Choices: tlsname.Suites(),
			Usage: "`names` of the cipher suites for TLS 1.2, as for Kubernetes' components, for example TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; " +
				"TLS 1.3 suites are not configurable; defaults to all AEAD suites"},
		{Name: "http2", Field: "serving.http2",
			Usage: "enable HTTP/2 in addition to HTTP/1.1; kube-apiserver uses it for loopback URLs only"},
		{Name: "read-header-timeout", Field: "serving.readHeaderTimeout",
			Usage: "maximum time for reading request headers and, if it is more than 15s, for a TLS handshake"},
		{Name: "read-timeout", Field: "serving.readTimeout",
			Usage: "maximum time for reading a whole request"},
		{Name: "write-timeout", Field: "serving.writeTimeout",
			Usage: "maximum time from the end of the request headers to the end of the response; at least 30s"},
		{Name: "idle-timeout", Field: "serving.idleTimeout",
			Usage: "how long an idle connection is kept open; it must exceed the 90s after which kube-apiserver closes idle connections"},
		{Name: "max-header-bytes", Field: "serving.maxHeaderBytes",
			Usage: "maximum size of request headers, in `bytes`"},
		{Name: "max-body-bytes", Field: "serving.maxBodyBytes",
			Usage: "maximum size of a request body, in `bytes`; larger requests get 413"},
		{Name: "max-bytes-in-flight", Field: "serving.maxBytesInFlight",
			Usage: "maximum total size of request bodies in memory, in `bytes`; beyond it, the server drops the body that arrives slowest, or responds with 429; 0 means an eighth of GOMEMLIMIT, at most 64 MiB"},
		{Name: "min-body-rate", Field: "serving.minBodyRate",
			Usage: "minimum transfer rate of a request body in `bytes` per second, enforced after --read-header-timeout; slower requests get 408; 0 disables the limit"},
		{Name: "max-concurrent-reviews", Field: "serving.maxConcurrentReviews",
			Usage: "maximum number of reviews processed at the same time, at most half of them for one namespace; further reviews queue for up to half of their timeout and then get 429; 0 means 4 per CPU, as long as GOMEMLIMIT allows 16 MiB for each; at least 2"},
		{Name: "max-waiting-reviews", Field: "serving.maxWaitingReviews",
			Usage: "maximum number of queued reviews; beyond it, the newest review of the namespace with the most queued reviews gets 429; 0 means 128 times --max-concurrent-reviews"},
		{Name: "max-connections", Field: "serving.maxConnections",
			Usage: "maximum number of open connections; beyond it, the server closes the connection whose body arrives slowest, or the one that has been idle longest; 0 means one per 256 KiB of GOMEMLIMIT, at most 4096"},
		{Name: "max-metrics-connections", Field: "serving.maxMetricsConnections",
			Usage: "maximum number of open connections to --metrics-bind-address; 0 means a sixteenth of --max-connections, but at least 16 and at most 256"},
		{Name: "drain-min", Field: "serving.drainMin",
			Usage: "minimum time to keep serving after SIGTERM, even without open connections"},
		{Name: "drain-timeout", Field: "serving.drainTimeout",
			Usage: "maximum time to wait after SIGTERM for connections to close"},

		{Name: "log-level", Field: "log.level", Group: groupLog, Choices: logging.Levels,
			Usage: "minimum `level` of messages to log: " + cli.OneOf(logging.Levels)},
		{Name: "log-format", Field: "log.format", Group: groupLog, Choices: logging.Formats,
			Usage: "`format` of the log: " + cli.OneOf(logging.Formats)},
		{Name: "verbosity", Short: "v", Field: "log.verbosity", Group: groupLog,
			Usage: "log `verbosity` of Kubernetes' client libraries, 0 to 10; above 0 implies --log-level debug"},
	}
}

// FlagNamed returns the flag of that name.
func FlagNamed(flags []setting.Flag, name string) setting.Flag {
	return flags[slices.IndexFunc(flags, func(f setting.Flag) bool { return f.Name == name })]
}

// selector is the value of a flag for a label selector.
type selector struct{ field **metav1.LabelSelector }

func selectorFlag(pointer any) setting.Value { return selector{pointer.(**metav1.LabelSelector)} }

// Set implements [setting.Value].
func (s selector) Set(text string) (err error) {
	*s.field = nil
	if text != "" {
		*s.field, err = metav1.ParseToLabelSelector(text)
	}
	return err
}

// String implements [setting.Value].
func (s selector) String() string {
	if s.field == nil || *s.field == nil {
		return ""
	}
	return metav1.FormatLabelSelector(*s.field)
}

// Type implements [setting.Value].
func (s selector) Type() string { return "string" }
