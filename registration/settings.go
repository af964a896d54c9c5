// SPDX-License-Identifier: Apache-2.0

// Package registration has the settings of who makes the API server call the webhooks of an application, and when.
// An application registers its webhooks itself, its command manifests prints the configurations, and uninstall removes them.
//
// Experimental: only the types that the stable core names keep their promise, see docs/compatibility.md.
package registration

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Mode selects who writes webhook configurations.
type Mode string

const (
	// ModeAPI means that the server writes them.
	ModeAPI Mode = "API"
	// ModeManifest means that the server writes files with them, for kube-apiserver on the
	// same host.
	ModeManifest Mode = "Manifest"
	// ModeNone means that the server does not write them; they are applied from the output
	// of `sallyport manifests`, for example.
	ModeNone Mode = "None"
)

// Settings configure how the API server reaches the webhooks, who registers them, and when they
// are called.
type Settings struct {
	// mode selects who writes the webhook configurations: the server, through the API (API)
	// or as static manifests for kube-apiserver (Manifest), or something other than the
	// server (None). Default API.
	Mode Mode `json:"mode"`
	// staticManifestsDir is the absolute path of the directory for static admission
	// manifests. Required if mode is Manifest. Set staticManifestsDir of kube-apiserver's
	// two webhook plugins to its subdirectories mutating and validating.
	StaticManifestsDir string `json:"staticManifestsDir,omitempty"`
	// owner is the object that owns the webhook configurations, clusterrole/NAME: they are
	// garbage-collected when it is deleted. It is looked up once, when the server starts.
	// If empty, they have no owner. Only used if mode is API.
	Owner string `json:"owner,omitempty"`
	// service is the Service through which the API server calls a server inside the
	// cluster. It or url is required, unless mode is None and the certificate is from
	// files.
	Service *Service `json:"service,omitempty"`
	// url is where the API server calls a server outside the cluster, for example
	// https://127.0.0.1:9443.
	URL string `json:"url,omitempty"`
	// conversionService is the Service through which the API server calls the converters,
	// if it is not service. It should have publishNotReadyAddresses, because the server may
	// need converted objects to become ready.
	ConversionService *Service `json:"conversionService,omitempty"`
	// name is the name of the webhook configurations. The API server calls mutating webhook
	// configurations in the order of their names. Default the name of the application.
	Name string `json:"name"`
	// namespaceSelector limits the webhooks to namespaces with matching labels, in addition
	// to the selectors of their definitions. If empty, it matches all namespaces.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// excludedNamespaces are namespaces for which the webhooks are never called. The
	// namespace of the Service is excluded too, unless sharedNamespace is true. Default
	// kube-system, kube-node-lease and kube-public.
	ExcludedNamespaces []string `json:"excludedNamespaces"`
	// ownPods is the label of the server's own pods, key=value. In a shared namespace,
	// webhooks for pods are not called for pods with this label. Empty if the pods have no
	// such label. Default app.kubernetes.io/name and the name of the application.
	OwnPods string `json:"ownPods"`
	// sharedNamespace is true if other workloads run in the namespace of the Service. Then
	// only pods with the label ownPods are excluded, instead of the whole namespace.
	// Default false.
	SharedNamespace bool `json:"sharedNamespace"`
	// allowWedge permits registering webhooks that can block the whole cluster while the
	// server is down. Its value is the reason for doing so. It is used for the webhooks
	// whose definition has none.
	AllowWedge string `json:"allowWedge,omitempty"`
	// failurePolicy is how the API server treats a request if calling the webhook fails: it
	// rejects the request (Fail) or admits the object unchanged (Ignore). If empty, that of
	// each definition; serve defaults to Fail.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// timeoutSeconds is how long the API server waits for a webhook to respond, 1 to 30. 0
	// is that of each definition; serve defaults to 5.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// reviewVersions are the accepted versions of AdmissionReview, in order of preference.
	// If empty, those of each definition; serve defaults to v1 and v1beta1.
	ReviewVersions []string `json:"reviewVersions,omitempty"`
	// foreignTerms is what the server does with selector terms and match conditions that
	// other clients add to its webhooks: it preserves them and reports them (Keep), or
	// removes them (Refuse). Only used if mode is API. Default Keep.
	ForeignTerms string `json:"foreignTerms"`

	// Adjust changes a definition after all of the above has been applied. It may be nil,
	// and must be deterministic.
	Adjust func(*admission.Webhook) `json:"-"`
}

// LeaderElectionSettings configure the election of the replica that runs the controllers and, for
// an authority in a Secret, writes webhook configurations and rotates the authority. All replicas
// serve. The defaults are those of Kubernetes' components.
type LeaderElectionSettings struct {
	// leaderElect makes one replica at a time run the controllers, write the webhook
	// configurations and rotate the authority. If false, every replica does. Default true.
	LeaderElect bool `json:"leaderElect"`
	// namespace is the namespace of the lease of controllers. If empty, that of the pod.
	// The other lease has the name and namespace of the Secret.
	Namespace string `json:"namespace,omitempty"`
	// leaseDuration is how long other replicas wait before they take over from a leader
	// that stopped renewing its lease. Default 15s.
	LeaseDuration time.Duration `json:"leaseDuration"`
	// renewDeadline is how long a leader retries renewing its lease before it gives up
	// leadership. Default 10s.
	RenewDeadline time.Duration `json:"renewDeadline"`
	// retryPeriod is the time between two attempts to acquire or renew the lease. Default
	// 2s.
	RetryPeriod time.Duration `json:"retryPeriod"`
}

// Service references a Kubernetes Service. The serving certificate must have the subject
// alternative name <Name>.<Namespace>.svc.
type Service struct {
	// namespace is the namespace of the Service.
	Namespace string `json:"namespace"`
	// name is the name of the Service.
	Name string `json:"name"`
	// port is the port of the Service, not of the container. 0 means 443.
	Port int32 `json:"port,omitzero"`
}
