// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a file begins with.
const (
	APIVersion = "config.sallyport.io/v1alpha1"
	Kind       = "SallyportConfiguration"
)

// SallyportConfiguration configures `sallyport serve`. A field that is absent, or null, has
// its default; `sallyport config print` shows all of them. Flags override the file.
type SallyportConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Kubeconfig is a file that says how to reach the API server; empty for the service
	// account of the pod. Flag --kubeconfig.
	Kubeconfig     string         `json:"kubeconfig,omitempty"`
	Registration   Registration   `json:"registration"`
	Certificate    Certificate    `json:"certificate"`
	LeaderElection LeaderElection `json:"leaderElection"`
	Authentication Authentication `json:"authentication"`
	Serving        Serving        `json:"serving"`
	Log            Log            `json:"log"`
	Tracing        Tracing        `json:"tracing"`
	// Webhooks are the ready-made webhooks that are enabled, in any order. Default
	// poddefault. Flag --webhooks.
	Webhooks []Webhook `json:"webhooks"`
	// Controllers run beside their webhooks: foo runs foo, -foo does not, * runs all that
	// are not named; an empty list runs none. Default "*". Flag --controllers.
	Controllers []string `json:"controllers"`
}

// Registration says how the API server reaches the webhooks, who registers them, and when
// they are called.
type Registration struct {
	// Mode says who writes the webhook configurations: the server itself to the API server
	// (api), or as files that kube-apiserver reads (manifest), or somebody else (none).
	// Default api. Flag --registration.
	Mode string `json:"mode"`
	// StaticManifestsDir is for the mode manifest: the folder of static admission
	// manifests, an absolute path. staticManifestsDir of kube-apiserver's two webhook
	// plugins names its folders mutating and validating. Flag --static-manifests-dir.
	StaticManifestsDir string `json:"staticManifestsDir,omitempty"`
	// Owner is for the mode api: the object with whose deletion the webhook configurations
	// go too, clusterrole/NAME; empty for none. Flag --owner.
	Owner string `json:"owner,omitempty"`
	// Service is the Service by which the API server reaches the server inside the cluster,
	// namespace/name[:port]. Flag --service.
	Service string `json:"service,omitempty"`
	// URL is where the API server reaches the server outside of the cluster, for example
	// https://127.0.0.1:9443. Flag --url.
	URL string `json:"url,omitempty"`
	// Name is that of the webhook configurations; the API server calls mutating ones in the
	// order of their names. Default sallyport. Flag --configuration-name.
	Name string `json:"name"`
	// NamespaceSelector is a label selector of the namespaces that the webhooks are for, for
	// example app.kubernetes.io/part-of=kubeflow-profile; empty for all. Flag
	// --namespace-selector.
	NamespaceSelector string `json:"namespaceSelector,omitempty"`
	// ExcludedNamespaces are namespaces that the webhooks are never called for. That of the
	// Service is excluded as well, unless it is shared. Default kube-system,
	// kube-node-lease and kube-public.
	ExcludedNamespaces []string `json:"excludedNamespaces"`
	// OwnPods is the label of the pods of this server, key=value. In a shared namespace the
	// webhooks for pods are not called for them. Empty if they have none. Default
	// app.kubernetes.io/name=sallyport.
	OwnPods string `json:"ownPods"`
	// SharedNamespace is set if others use the namespace of the Service too: only the pods
	// with the label ownPods are excluded then, not the namespace. Default false.
	SharedNamespace bool `json:"sharedNamespace"`
	// AllowWedge is the reason why webhooks may be registered that can bring the cluster to
	// a halt while the server is away.
	AllowWedge string `json:"allowWedge,omitempty"`
	// FailurePolicy says what becomes of an object whose webhook fails: it is refused (Fail)
	// or admitted as it is (Ignore). Default Fail. Flag --failure-policy.
	FailurePolicy string `json:"failurePolicy"`
	// TimeoutSeconds is how long the API server waits for a webhook, 1 to 30. Default 5.
	TimeoutSeconds int32 `json:"timeoutSeconds"`
	// ReviewVersions are the versions of AdmissionReview that are spoken, the preferred one
	// first. Default v1 and v1beta1.
	ReviewVersions []string `json:"reviewVersions"`
}

// Certificate says where the serving certificate comes from.
type Certificate struct {
	// Source is an authority of its own that all replicas share in a Secret (authority), or
	// files (files). Default authority. Flag --certificate-source.
	Source string `json:"source"`
	// AuthoritySecret is for the source authority: the Secret, namespace/name. Default
	// sallyport-authority in the namespace of the Service; with a URL the authority is in
	// memory. Flag --authority-secret.
	AuthoritySecret string `json:"authoritySecret,omitempty"`
	// Lifetime is for the source authority: how long a serving certificate is valid. It is
	// renewed after two thirds. Default 48h.
	Lifetime metav1.Duration `json:"lifetime"`
	// CALifetime is for the source authority: how long a new authority is valid. Another one
	// follows after two thirds. Default ten years.
	CALifetime metav1.Duration `json:"caLifetime"`
	// CAPropagation is for the source authority: the time in which all replicas and API
	// servers know of a change. A rotation waits that long twice. Default 2m.
	CAPropagation metav1.Duration `json:"caPropagation"`
	// CertFile is for the source files: the certificate and its chain, PEM. It is read again
	// when it changes. Flag --tls-cert-file.
	CertFile string `json:"certFile,omitempty"`
	// PrivateKeyFile is for the source files: the key, PEM. Flag --tls-private-key-file.
	PrivateKeyFile string `json:"privateKeyFile,omitempty"`
	// CAFile is for the source files: what the API server shall trust, PEM; empty if somebody
	// else writes the caBundle. Flag --tls-ca-file.
	CAFile string `json:"caFile,omitempty"`
}

// LeaderElection says which replica writes.
type LeaderElection struct {
	// LeaderElect lets one replica at a time run the controllers, write webhook
	// configurations and replace the authority in the Secret; otherwise each does. Default
	// true. Flag --leader-elect.
	LeaderElect bool `json:"leaderElect"`
	// LeaseDuration is how long other replicas wait for a leader that is silent. Default 15s.
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// RenewDeadline is after how long a leader that cannot renew its lease gives up.
	// Default 10s.
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// RetryPeriod is the time between two attempts to get or to renew the lease. Default 2s.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Authentication says who may call.
type Authentication struct {
	// Mode says who may call admission webhooks: anybody (none), who has a client
	// certificate of a CA (client-ca), or whom the API server lets (delegated). The API
	// server's AdmissionConfiguration must say how it shows who it is. Default none. Flag
	// --authentication.
	Mode string `json:"mode"`
	// ClientCAFile is for the mode client-ca: the CA of callers' certificates, PEM. It is
	// read again when it changes. Flag --client-ca-file.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// ClientCommonNames are for the mode client-ca: common names of those who may call;
	// empty for all whom the CA has signed.
	ClientCommonNames []string `json:"clientCommonNames"`
	// Metrics says who may read /metrics: none or delegated. Other than none, the port speaks
	// TLS with the certificate of the webhooks, and the probes stay open. Default none. Flag
	// --metrics-authentication.
	Metrics string `json:"metrics"`
	// PrivatePaths appends a segment that cannot be guessed to the paths that are registered,
	// a fence where the API server cannot be told to show who it is. By default they are
	// private where all replicas share an authority and register themselves, unless paths
	// are registered without. Flag --private-paths.
	PrivatePaths *bool `json:"privatePaths,omitempty"`
}

// Serving has addresses, limits and times.
type Serving struct {
	// BindAddress is the address to serve webhooks on; empty for all. Flag --bind-address.
	BindAddress string `json:"bindAddress,omitempty"`
	// SecurePort is the port to serve webhooks on with TLS; 0 takes a free one. Default 9443.
	// Flag --secure-port.
	SecurePort int `json:"securePort"`
	// MetricsBindAddress is host:port to serve /metrics, /livez and /readyz on, for example
	// 127.0.0.1:8080 for this host or pod alone; 0 switches it off. Without TLS, unless
	// authentication.metrics says who may read. Default :8080. Flag --metrics-bind-address.
	MetricsBindAddress string `json:"metricsBindAddress"`
	// HTTP2 offers HTTP/2 beside HTTP/1.1. kube-apiserver uses it for loopback URLs only.
	// Default false.
	HTTP2 bool `json:"http2"`
	// ReadHeaderTimeout bounds a TLS handshake, and the header of a request. Default 5s.
	ReadHeaderTimeout metav1.Duration `json:"readHeaderTimeout"`
	// ReadTimeout bounds the time to receive a whole request. Default 15s.
	ReadTimeout metav1.Duration `json:"readTimeout"`
	// WriteTimeout bounds the time from the header of a request to the end of its answer; at
	// least 30s, which is its default.
	WriteTimeout metav1.Duration `json:"writeTimeout"`
	// IdleTimeout is how long a connection is kept without a request; above the 90s after
	// which kube-apiserver closes it. Default 130s.
	IdleTimeout metav1.Duration `json:"idleTimeout"`
	// MaxHeaderBytes bounds the header of a request. Default 16384.
	MaxHeaderBytes int `json:"maxHeaderBytes"`
	// MaxBodyBytes bounds the body of a request; more is answered with 413. Default 8388608.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
	// MaxBytesInFlight bounds the request bodies in memory at one time. One more cuts the
	// body that arrives slowest, or is answered with 429. Default 0: an eighth of GOMEMLIMIT,
	// at most 64 MiB.
	MaxBytesInFlight int64 `json:"maxBytesInFlight"`
	// MinBodyRate is how many bytes of a body must arrive in each second after
	// readHeaderTimeout; fewer are answered with 408. 0 is for no such limit. Default 65536.
	MinBodyRate int64 `json:"minBodyRate"`
	// MaxConcurrentReviews bounds the reviews at work at one time, half of them of one
	// namespace. More queue for up to half of their timeout and are then answered with 429.
	// Default 0: 4 for each CPU as far as GOMEMLIMIT has 16 MiB for each, at least 2.
	MaxConcurrentReviews int `json:"maxConcurrentReviews"`
	// MaxWaitingReviews bounds the reviews that queue. One more sends away the last one of the
	// namespace that has most, with 429. Default 0: 128 for each of maxConcurrentReviews.
	MaxWaitingReviews int `json:"maxWaitingReviews"`
	// MaxConnections bounds the open connections. One more closes the one whose body arrives
	// slowest, or that has waited longest for a request. Default 0: one for each 256 KiB of
	// GOMEMLIMIT, at most 4096.
	MaxConnections int `json:"maxConnections"`
	// MaxMetricsConnections bounds the open connections to metricsBindAddress. Default 0: a
	// sixteenth of maxConnections, 16 to 256.
	MaxMetricsConnections int `json:"maxMetricsConnections"`
	// DrainMin is how long the server goes on answering after SIGTERM, even if nobody is
	// connected. Default 15s.
	DrainMin metav1.Duration `json:"drainMin"`
	// DrainTimeout is how long the server waits after SIGTERM until the last connection has
	// gone. Default 95s.
	DrainTimeout metav1.Duration `json:"drainTimeout"`
}

// Log says what is logged, and how.
type Log struct {
	// Level is that of the least important messages to log: debug, info, warn or error.
	// Default info. Flag --log-level.
	Level string `json:"level"`
	// Format is text or json. Default text. Flag --log-format.
	Format string `json:"format"`
	// Verbosity is the level of detail of Kubernetes' client libraries, 0 to 10. Above 0 it
	// implies the level debug. Default 0. Flag --verbosity, -v.
	Verbosity int `json:"verbosity"`
}

// Tracing says where spans of the calls go, as the TracingConfiguration of kube-apiserver
// does.
type Tracing struct {
	// Endpoint is host:port of an OpenTelemetry collector (OTLP over gRPC, without TLS);
	// empty for none.
	Endpoint string `json:"endpoint,omitempty"`
	// SamplingRatePerMillion is how many calls are traced of a million whose caller traces
	// nothing. Those that kube-apiserver traces are traced anyway. Default 0.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion"`
}

// Webhook is one of the ready-made webhooks. If it consists of several, all of it is
// for each.
type Webhook struct {
	// Name is that of `sallyport webhooks list`. It must be there.
	Name string `json:"name"`
	// Enabled is true if absent.
	Enabled *bool `json:"enabled,omitempty"`
	// FailurePolicy and TimeoutSeconds override those of registration.
	FailurePolicy  *string `json:"failurePolicy,omitempty"`
	TimeoutSeconds *int32  `json:"timeoutSeconds,omitempty"`
	// Path is where the webhook answers, in place of its own: that of the mutating one,
	// where the entry has a validating one too. It takes effect at the next start.
	Path *string `json:"path,omitempty"`
	// MatchPolicy is Exact or Equivalent, which is the default.
	MatchPolicy *string `json:"matchPolicy,omitempty"`
	// ReinvocationPolicy is Never or IfNeeded, which is the default; for mutating webhooks.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty"`
	// NamespaceSelector, ObjectSelector and MatchConditions narrow what the webhook is
	// for; its own and those of registration hold all the same.
	NamespaceSelector *metav1.LabelSelector                    `json:"namespaceSelector,omitempty"`
	ObjectSelector    *metav1.LabelSelector                    `json:"objectSelector,omitempty"`
	MatchConditions   []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
	// Settings are the webhook's own; see its page.
	Settings json.RawMessage `json:"settings,omitempty"`
}
