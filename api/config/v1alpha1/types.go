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

// SallyportConfiguration configures `sallyport serve`. A field that is absent has the
// default of the flag that its tag names; a flag that is given counts before the file.
type SallyportConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Kubeconfig is a file that says how to reach the API server.
	Kubeconfig     *string        `json:"kubeconfig,omitempty" flag:"kubeconfig"`
	Registration   Registration   `json:"registration,omitzero"`
	Certificate    Certificate    `json:"certificate,omitzero"`
	LeaderElection LeaderElection `json:"leaderElection,omitzero"`
	Authentication Authentication `json:"authentication,omitzero"`
	Serving        Serving        `json:"serving,omitzero"`
	Log            Log            `json:"log,omitzero"`
	Tracing        Tracing        `json:"tracing,omitzero"`
	// Webhooks are the ready-made webhooks that are enabled; without the field it is
	// poddefault. One that is listed with enabled: false is not.
	Webhooks []Webhook `json:"webhooks,omitzero"`
	// Controllers are those that run beside them; without the field it is "*".
	Controllers []string `json:"controllers,omitzero" flag:"controllers"`
}

// Registration says how the API server reaches the webhooks, who tells it, and when
// it calls them.
type Registration struct {
	Mode               *string  `json:"mode,omitempty" flag:"registration"`
	StaticManifestsDir *string  `json:"staticManifestsDir,omitempty" flag:"static-manifests-dir"`
	Owner              *string  `json:"owner,omitempty" flag:"owner"`
	Service            *string  `json:"service,omitempty" flag:"service"`
	URL                *string  `json:"url,omitempty" flag:"url"`
	Name               *string  `json:"name,omitempty" flag:"configuration-name"`
	NamespaceSelector  *string  `json:"namespaceSelector,omitempty" flag:"namespace-selector"`
	ExcludedNamespaces []string `json:"excludedNamespaces,omitzero" flag:"excluded-namespaces"`
	OwnPods            *string  `json:"ownPods,omitempty" flag:"own-pods"`
	SharedNamespace    *bool    `json:"sharedNamespace,omitempty" flag:"shared-namespace"`
	AllowWedge         *string  `json:"allowWedge,omitempty" flag:"allow-wedge"`
	FailurePolicy      *string  `json:"failurePolicy,omitempty" flag:"failure-policy"`
	TimeoutSeconds     *int32   `json:"timeoutSeconds,omitempty" flag:"webhook-timeout"`
	ReviewVersions     []string `json:"reviewVersions,omitzero" flag:"review-versions"`
}

// Certificate says where the serving certificate comes from.
type Certificate struct {
	Source          *string          `json:"source,omitempty" flag:"certificate-source"`
	AuthoritySecret *string          `json:"authoritySecret,omitempty" flag:"authority-secret"`
	Lifetime        *metav1.Duration `json:"lifetime,omitempty" flag:"certificate-lifetime"`
	CALifetime      *metav1.Duration `json:"caLifetime,omitempty" flag:"ca-lifetime"`
	CAPropagation   *metav1.Duration `json:"caPropagation,omitempty" flag:"ca-propagation"`
	CertFile        *string          `json:"certFile,omitempty" flag:"tls-cert-file"`
	PrivateKeyFile  *string          `json:"privateKeyFile,omitempty" flag:"tls-private-key-file"`
	CAFile          *string          `json:"caFile,omitempty" flag:"tls-ca-file"`
}

// LeaderElection says which replica writes.
type LeaderElection struct {
	LeaderElect   *bool            `json:"leaderElect,omitempty" flag:"leader-elect"`
	LeaseDuration *metav1.Duration `json:"leaseDuration,omitempty" flag:"leader-elect-lease-duration"`
	RenewDeadline *metav1.Duration `json:"renewDeadline,omitempty" flag:"leader-elect-renew-deadline"`
	RetryPeriod   *metav1.Duration `json:"retryPeriod,omitempty" flag:"leader-elect-retry-period"`
}

// Authentication says who may call.
type Authentication struct {
	Mode              *string  `json:"mode,omitempty" flag:"authentication"`
	ClientCAFile      *string  `json:"clientCAFile,omitempty" flag:"client-ca-file"`
	ClientCommonNames []string `json:"clientCommonNames,omitzero" flag:"client-common-names"`
	Metrics           *string  `json:"metrics,omitempty" flag:"metrics-authentication"`
	PrivatePaths      *bool    `json:"privatePaths,omitempty" flag:"private-paths"`
}

// Serving has addresses, limits and times.
type Serving struct {
	BindAddress           *string          `json:"bindAddress,omitempty" flag:"bind-address"`
	SecurePort            *int             `json:"securePort,omitempty" flag:"secure-port"`
	MetricsBindAddress    *string          `json:"metricsBindAddress,omitempty" flag:"metrics-bind-address"`
	HTTP2                 *bool            `json:"http2,omitempty" flag:"http2"`
	ReadHeaderTimeout     *metav1.Duration `json:"readHeaderTimeout,omitempty" flag:"read-header-timeout"`
	ReadTimeout           *metav1.Duration `json:"readTimeout,omitempty" flag:"read-timeout"`
	WriteTimeout          *metav1.Duration `json:"writeTimeout,omitempty" flag:"write-timeout"`
	IdleTimeout           *metav1.Duration `json:"idleTimeout,omitempty" flag:"idle-timeout"`
	MaxHeaderBytes        *int             `json:"maxHeaderBytes,omitempty" flag:"max-header-bytes"`
	MaxBodyBytes          *int64           `json:"maxBodyBytes,omitempty" flag:"max-body-bytes"`
	MaxBytesInFlight      *int64           `json:"maxBytesInFlight,omitempty" flag:"max-bytes-in-flight"`
	MinBodyRate           *int64           `json:"minBodyRate,omitempty" flag:"min-body-rate"`
	MaxConcurrentReviews  *int             `json:"maxConcurrentReviews,omitempty" flag:"max-concurrent-reviews"`
	MaxWaitingReviews     *int             `json:"maxWaitingReviews,omitempty" flag:"max-waiting-reviews"`
	MaxConnections        *int             `json:"maxConnections,omitempty" flag:"max-connections"`
	MaxMetricsConnections *int             `json:"maxMetricsConnections,omitempty" flag:"max-metrics-connections"`
	DrainMin              *metav1.Duration `json:"drainMin,omitempty" flag:"drain-min"`
	DrainTimeout          *metav1.Duration `json:"drainTimeout,omitempty" flag:"drain-timeout"`
}

// Log says what is logged, and how.
type Log struct {
	Level     *string `json:"level,omitempty" flag:"log-level"`
	Format    *string `json:"format,omitempty" flag:"log-format"`
	Verbosity *int    `json:"verbosity,omitempty" flag:"verbosity"`
}

// Tracing says where spans of the calls go, as the TracingConfiguration of kube-apiserver
// does.
type Tracing struct {
	Endpoint               *string `json:"endpoint,omitempty" flag:"tracing-endpoint"`
	SamplingRatePerMillion *int32  `json:"samplingRatePerMillion,omitempty" flag:"tracing-sampling-rate-per-million"`
}

// Webhook is one of the ready-made webhooks. If it consists of several, all of it is
// for each.
type Webhook struct {
	// Name is that of `sallyport webhooks list`.
	Name string `json:"name"`
	// Enabled is true if absent.
	Enabled *bool `json:"enabled,omitempty"`
	// FailurePolicy and TimeoutSeconds count before those of registration.
	FailurePolicy  *string `json:"failurePolicy,omitempty"`
	TimeoutSeconds *int32  `json:"timeoutSeconds,omitempty"`
	// Path is where the webhook answers, in place of its own: that of the mutating one,
	// where the entry has a validating one too. It counts from the next start on.
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
