// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion and Kind identify a configuration file.
const (
	APIVersion = "config.sallyport.io/v1alpha1"
	Kind       = "SallyportConfiguration"
)

// SallyportConfiguration configures `sallyport serve`. A field that is absent or null takes
// its default; `sallyport config print` shows all fields. Flags override the file.
type SallyportConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Kubeconfig is the path of a kubeconfig file. If empty, the server uses the pod's
	// service account. A server that calls no API server needs neither. Flag --kubeconfig.
	Kubeconfig     string         `json:"kubeconfig,omitempty"`
	Registration   Registration   `json:"registration"`
	Certificate    Certificate    `json:"certificate"`
	LeaderElection LeaderElection `json:"leaderElection"`
	Authentication Authentication `json:"authentication"`
	Serving        Serving        `json:"serving"`
	Log            Log            `json:"log"`
	Tracing        Tracing        `json:"tracing"`
	Recording      Recording      `json:"recording"`
	// Webhooks lists the ready-made webhooks to run, in any order. Default poddefault. Flag
	// --webhooks.
	Webhooks []Webhook `json:"webhooks"`
	// Controllers selects the controllers of the enabled webhooks: foo enables foo, -foo
	// disables it, * enables all that are not named, except poddefault-reports. An empty
	// list enables none. Default "*". Flag --controllers.
	Controllers []string `json:"controllers"`
}

// Registration configures how the API server reaches the webhooks, who registers them, and
// when they are called.
type Registration struct {
	// Mode selects who writes the webhook configurations: the server, through the API (api)
	// or as static manifests for kube-apiserver (manifest), or something other than the
	// server (none). Default api. Flag --registration.
	Mode string `json:"mode"`
	// StaticManifestsDir is the absolute path of the directory for static admission
	// manifests. Required if mode is manifest. Set staticManifestsDir of kube-apiserver's
	// two webhook plugins to its subdirectories mutating and validating. Flag
	// --static-manifests-dir.
	StaticManifestsDir string `json:"staticManifestsDir,omitempty"`
	// Owner is the object that owns the webhook configurations, clusterrole/NAME: they are
	// garbage-collected when it is deleted. If empty, they have no owner. Only used if mode
	// is api. Flag --owner.
	Owner string `json:"owner,omitempty"`
	// Service is the Service through which the API server calls a server inside the
	// cluster, namespace/name[:port]. Flag --service.
	Service string `json:"service,omitempty"`
	// URL is where the API server calls a server outside the cluster, for example
	// https://127.0.0.1:9443. Flag --url.
	URL string `json:"url,omitempty"`
	// Name is the name of the webhook configurations. The API server calls mutating webhook
	// configurations in the order of their names. Default sallyport. Flag
	// --configuration-name.
	Name string `json:"name"`
	// NamespaceSelector limits the webhooks to namespaces with matching labels, for example
	// app.kubernetes.io/part-of=kubeflow-profile. If empty, it matches all namespaces. Flag
	// --namespace-selector.
	NamespaceSelector string `json:"namespaceSelector,omitempty"`
	// ExcludedNamespaces are namespaces for which the webhooks are never called. The
	// namespace of the Service is excluded too, unless sharedNamespace is true. Default
	// kube-system, kube-node-lease and kube-public.
	ExcludedNamespaces []string `json:"excludedNamespaces"`
	// OwnPods is the label of the server's own pods, key=value. In a shared namespace,
	// webhooks for pods are not called for pods with this label. Empty if the pods have no
	// such label. Default app.kubernetes.io/name=sallyport.
	OwnPods string `json:"ownPods"`
	// SharedNamespace is true if other workloads run in the namespace of the Service. Then
	// only pods with the label ownPods are excluded, instead of the whole namespace.
	// Default false.
	SharedNamespace bool `json:"sharedNamespace"`
	// AllowWedge permits registering webhooks that can block the whole cluster while the
	// server is down. Its value is the reason for doing so.
	AllowWedge string `json:"allowWedge,omitempty"`
	// FailurePolicy is how the API server treats a request if calling the webhook fails: it
	// rejects the request (Fail) or admits the object unchanged (Ignore). Default Fail.
	// Flag --failure-policy.
	FailurePolicy string `json:"failurePolicy"`
	// TimeoutSeconds is how long the API server waits for a webhook to respond, 1 to 30.
	// Default 5.
	TimeoutSeconds int32 `json:"timeoutSeconds"`
	// ReviewVersions are the accepted versions of AdmissionReview, in order of preference.
	// Default v1 and v1beta1.
	ReviewVersions []string `json:"reviewVersions"`
	// ForeignTerms is what the server does with selector terms and match conditions that
	// other clients add to its webhooks: it preserves them and reports them (Keep), or
	// removes them (Refuse). Only used if mode is api. Default Keep.
	ForeignTerms string `json:"foreignTerms"`
}

// Certificate configures the source of the serving certificate.
type Certificate struct {
	// Source is authority for a self-managed certificate authority that all replicas share
	// through a Secret, or files. Default authority. Flag --certificate-source.
	Source string `json:"source"`
	// AuthoritySecret is the Secret that stores the authority, namespace/name. Only used if
	// source is authority. Default sallyport-authority in the namespace of the Service;
	// with a URL, the authority is held in memory. Flag --authority-secret.
	AuthoritySecret string `json:"authoritySecret,omitempty"`
	// Lifetime is how long a serving certificate is valid. It is renewed after two thirds
	// of its lifetime. Only used if source is authority. Default 48h.
	Lifetime metav1.Duration `json:"lifetime"`
	// CALifetime is how long a new CA certificate is valid. It is replaced after two thirds
	// of its lifetime. Only used if source is authority. Default ten years.
	CALifetime metav1.Duration `json:"caLifetime"`
	// CAPropagation is the time after which all replicas and API servers have observed a
	// change of the CA bundle. A rotation waits that long twice. Only used if source is
	// authority. Default 2m.
	CAPropagation metav1.Duration `json:"caPropagation"`
	// CertFile is the path of the PEM-encoded certificate and its chain. It is reloaded
	// when it changes. Only used if source is files. Flag --tls-cert-file.
	CertFile string `json:"certFile,omitempty"`
	// PrivateKeyFile is the path of the PEM-encoded private key. Only used if source is
	// files. Flag --tls-private-key-file.
	PrivateKeyFile string `json:"privateKeyFile,omitempty"`
	// CAFile is the path of the PEM-encoded CA bundle for the API server to trust. Leave it
	// empty if something else, such as cert-manager's CA injector, writes the caBundle.
	// Only used if source is files. Flag --tls-ca-file.
	CAFile string `json:"caFile,omitempty"`
}

// LeaderElection configures the election of the replica that writes.
type LeaderElection struct {
	// LeaderElect makes one replica at a time run the controllers, write the webhook
	// configurations and rotate the authority. If false, every replica does. Default true.
	// Flag --leader-elect.
	LeaderElect bool `json:"leaderElect"`
	// LeaseDuration is how long other replicas wait before they take over from a leader
	// that stopped renewing its lease. Default 15s.
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// RenewDeadline is how long a leader retries renewing its lease before it gives up
	// leadership. Default 10s.
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// RetryPeriod is the time between two attempts to acquire or renew the lease. Default
	// 2s.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Authentication configures who may call the server.
type Authentication struct {
	// Mode selects who may call admission webhooks: any caller (none), callers with a
	// client certificate signed by a given CA (client-ca), or callers that the API server
	// authenticates and authorizes (delegated). Unless it is none, the API server's
	// AdmissionConfiguration must name the credentials to present. Default none. Flag
	// --authentication.
	Mode string `json:"mode"`
	// ClientCAFile is the path of the PEM-encoded CA bundle that verifies client
	// certificates. It is reloaded when it changes. Required if mode is client-ca. Flag
	// --client-ca-file.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// ClientCommonNames are the accepted common names of client certificates. If empty, any
	// certificate signed by the CA is accepted. Only used if mode is client-ca.
	ClientCommonNames []string `json:"clientCommonNames"`
	// Metrics selects who may read /metrics: any caller (none), or callers that the API
	// server authenticates and authorizes (delegated). With delegated, the metrics port
	// serves TLS with the certificate of the webhooks; probes still need no credentials.
	// Default none. Flag --metrics-authentication.
	Metrics string `json:"metrics"`
	// PrivatePaths appends an unguessable segment to the registered paths, to protect the
	// webhooks where the API server cannot be configured to authenticate itself. By
	// default, paths are private if all replicas share an authority and register
	// themselves, unless the paths are already registered without the segment. Flag
	// --private-paths.
	PrivatePaths *bool `json:"privatePaths,omitempty"`
}

// Serving configures addresses, limits and timeouts.
type Serving struct {
	// BindAddress is the address to serve webhooks on. If empty, all addresses. Flag
	// --bind-address.
	BindAddress string `json:"bindAddress,omitempty"`
	// SecurePort is the port to serve webhooks on with TLS. 0 picks a free port. Default
	// 9443. Flag --secure-port.
	SecurePort int `json:"securePort"`
	// MetricsBindAddress is the host:port to serve /metrics, /livez and /readyz on, for
	// example 127.0.0.1:8080 to serve this host or pod only. 0 disables it. It serves plain
	// HTTP unless authentication.metrics is delegated. Default :8080. Flag
	// --metrics-bind-address.
	MetricsBindAddress string `json:"metricsBindAddress"`
	// HTTP2 enables HTTP/2 in addition to HTTP/1.1. kube-apiserver uses it for loopback
	// URLs only. Default false.
	HTTP2 bool `json:"http2"`
	// ReadHeaderTimeout limits the time for reading request headers and, if it is more than
	// 15s, for a TLS handshake. Default 5s.
	ReadHeaderTimeout metav1.Duration `json:"readHeaderTimeout"`
	// ReadTimeout limits the time for reading a whole request. Default 15s.
	ReadTimeout metav1.Duration `json:"readTimeout"`
	// WriteTimeout limits the time from the end of the request headers to the end of the
	// response. At least 30s. Default 30s.
	WriteTimeout metav1.Duration `json:"writeTimeout"`
	// IdleTimeout is how long an idle connection is kept open. It must exceed the 90s after
	// which kube-apiserver closes idle connections. Default 130s.
	IdleTimeout metav1.Duration `json:"idleTimeout"`
	// MaxHeaderBytes limits the size of request headers. Default 16384.
	MaxHeaderBytes int `json:"maxHeaderBytes"`
	// MaxBodyBytes limits the size of a request body; larger requests get 413. Default
	// 8388608.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
	// MaxBytesInFlight limits the total size of request bodies in memory. Beyond it, the
	// server drops the body that arrives slowest, or responds with 429. Default 0: an
	// eighth of GOMEMLIMIT, at most 64 MiB.
	MaxBytesInFlight int64 `json:"maxBytesInFlight"`
	// MinBodyRate is the minimum transfer rate of a request body in bytes per second,
	// enforced after readHeaderTimeout; slower requests get 408. 0 disables the limit.
	// Default 65536.
	MinBodyRate int64 `json:"minBodyRate"`
	// MaxConcurrentReviews limits the reviews processed at the same time, at most half of
	// them for one namespace. Further reviews queue for up to half of their timeout and
	// then get 429. Default 0: 4 per CPU, as long as GOMEMLIMIT allows 16 MiB for each; at
	// least 2.
	MaxConcurrentReviews int `json:"maxConcurrentReviews"`
	// MaxWaitingReviews limits the reviews in the queue. Beyond it, the newest review of
	// the namespace with the most queued reviews gets 429. Default 0: 128 times
	// maxConcurrentReviews.
	MaxWaitingReviews int `json:"maxWaitingReviews"`
	// MaxConnections limits the open connections. Beyond it, the server closes the
	// connection whose body arrives slowest, or the one that has been idle longest. Default
	// 0: one per 256 KiB of GOMEMLIMIT, at most 4096.
	MaxConnections int `json:"maxConnections"`
	// MaxMetricsConnections limits the open connections to metricsBindAddress. Default 0: a
	// sixteenth of maxConnections, but at least 16 and at most 256.
	MaxMetricsConnections int `json:"maxMetricsConnections"`
	// DrainMin is the minimum time the server keeps serving after SIGTERM, even without
	// open connections. Default 15s.
	DrainMin metav1.Duration `json:"drainMin"`
	// DrainTimeout is the maximum time the server waits after SIGTERM for connections to
	// close. Default 95s.
	DrainTimeout metav1.Duration `json:"drainTimeout"`
}

// Log configures logging.
type Log struct {
	// Level is the minimum level of messages to log: debug, info, warn or error. Default
	// info. Flag --log-level.
	Level string `json:"level"`
	// Format is text or json. Default text. Flag --log-format.
	Format string `json:"format"`
	// Verbosity is the log verbosity of Kubernetes' client libraries, 0 to 10. A value
	// above 0 implies level debug. Default 0. Flag --verbosity, -v.
	Verbosity int `json:"verbosity"`
}

// Tracing configures where spans are exported. Its fields are those of kube-apiserver's
// TracingConfiguration.
type Tracing struct {
	// Endpoint is the host:port of an OpenTelemetry collector (OTLP over gRPC, without
	// TLS). If empty, nothing is exported.
	Endpoint string `json:"endpoint,omitempty"`
	// SamplingRatePerMillion is the number of calls to trace per million calls that their
	// caller does not trace. Calls that kube-apiserver traces are always traced. Default 0.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion"`
}

// Webhook configures a ready-made webhook. If that consists of several webhooks, the fields
// apply to each of them.
type Webhook struct {
	// Name is the name that `sallyport webhooks list` prints. Required.
	Name string `json:"name"`
	// Enabled defaults to true.
	Enabled *bool `json:"enabled,omitempty"`
	// FailurePolicy and TimeoutSeconds override those of registration.
	FailurePolicy  *string `json:"failurePolicy,omitempty"`
	TimeoutSeconds *int32  `json:"timeoutSeconds,omitempty"`
	// Path overrides the URL path of the entry's first webhook, and answers there for all
	// webhooks of the entry: a configuration written for another server has one path. It
	// takes effect at the next start.
	Path *string `json:"path,omitempty"`
	// Paths overrides the URL paths of single webhooks of the entry, by their default names.
	// It takes effect at the next start.
	Paths map[string]string `json:"paths,omitempty"`
	// Names overrides the names under which webhooks of the entry are registered, by their
	// default names. It takes effect at the next start. Not for poddefault, whose webhooks
	// commands find by name.
	Names map[string]string `json:"names,omitempty"`
	// MatchPolicy is Exact or Equivalent. Default Equivalent.
	MatchPolicy *string `json:"matchPolicy,omitempty"`
	// ReinvocationPolicy of mutating webhooks is Never or IfNeeded. Default IfNeeded.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty"`
	// NamespaceSelector, ObjectSelector and MatchConditions narrow the requests that the
	// webhook is called for, in addition to its own and those of registration.
	NamespaceSelector *metav1.LabelSelector                    `json:"namespaceSelector,omitempty"`
	ObjectSelector    *metav1.LabelSelector                    `json:"objectSelector,omitempty"`
	MatchConditions   []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
	// Settings are specific to the webhook; see its documentation.
	Settings json.RawMessage `json:"settings,omitempty"`
}
