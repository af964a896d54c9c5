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
	// mode is the mode of registration: the server writes the webhook configurations through
	// the API (API) or as static manifests for kube-apiserver (Manifest), or does not write
	// them (None). Default API.
	Mode Mode `json:"mode" flag:"registration" value:"mode" group:"API server" enum:"API,Manifest,None"`
	// staticManifestsDir is the directory of static admission manifests to write, an absolute
	// path. Required if mode is Manifest. Set staticManifestsDir of kube-apiserver's two
	// webhook plugins to its subdirectories mutating and validating.
	StaticManifestsDir string `json:"staticManifestsDir,omitempty" flag:"static-manifests-dir" with:"mode=Manifest,required" value:"directory" group:"API server"`
	// owner is the object that owns the webhook configurations, clusterrole/NAME: they are
	// garbage-collected when it is deleted. It is looked up once, when the server starts.
	// If empty, they have no owner. Only used if mode is API.
	Owner string `json:"owner,omitempty" flag:"owner" with:"mode=API" value:"object" group:"API server"`
	// service is the Service through which the API server calls a server inside the
	// cluster. Without a URL it is required, unless mode is None and the certificate is from
	// files.
	Service *Service `json:"service,omitempty" flag:"service" value:"namespace/name[:port]" group:"API server"`
	// url is the URL where the API server calls a server outside the cluster, for example
	// https://127.0.0.1:9443.
	URL string `json:"url,omitempty" flag:"url" value:"URL" group:"API server"`
	// conversionService is the Service through which the API server calls the converters. It
	// should have publishNotReadyAddresses, because the server may need converted objects to
	// become ready. If empty, the Service of the webhooks.
	ConversionService *Service `json:"conversionService,omitempty" flag:"conversion-service" value:"namespace/name[:port]"`
	// name is the name of the webhook configurations. The API server calls mutating webhook
	// configurations in the order of their names. Default the name of the application.
	Name string `json:"name" flag:"configuration-name" value:"name" group:"Webhooks"`
	// namespaceSelector is the label selector of the namespaces to call the webhooks for, in
	// addition to the selectors of their definitions, for example
	// app.kubernetes.io/part-of=kubeflow-profile. If empty, all namespaces.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty" flag:"namespace-selector" value:"selector" group:"Webhooks"`
	// excludedNamespaces are namespaces for which the webhooks are never called. The
	// namespace of the Service is excluded too, unless sharedNamespace is true. Default
	// kube-system, kube-node-lease and kube-public.
	ExcludedNamespaces []string `json:"excludedNamespaces" flag:"excluded-namespaces" value:"namespaces"`
	// ownPods is the label of the server's own pods, key=value. In a shared namespace,
	// webhooks for pods are not called for pods with this label. Empty if the pods have no
	// such label. Default app.kubernetes.io/name and the name of the application.
	OwnPods string `json:"ownPods" flag:"own-pods" value:"label"`
	// sharedNamespace is true if other workloads run in the namespace of the Service. Then
	// only pods with the label ownPods are excluded, instead of the whole namespace.
	// Default false.
	SharedNamespace bool `json:"sharedNamespace" flag:"shared-namespace"`
	// allowWedge permits registering webhooks that can block the whole cluster while the
	// server is down. Its value is the reason for doing so. It is used for the webhooks
	// whose definition has none.
	AllowWedge string `json:"allowWedge,omitempty" flag:"allow-wedge" value:"reason"`
	// failurePolicy is the policy if calling a webhook fails: the API server rejects the
	// request (Fail) or admits the object unchanged (Ignore). If empty, that of each
	// definition; serve defaults to Fail.
	FailurePolicy string `json:"failurePolicy,omitempty" flag:"failure-policy" value:"policy" group:"Webhooks" enum:"Fail,Ignore"`
	// timeoutSeconds are the seconds that the API server waits for a webhook to respond, 1
	// to 30. 0 means those of each definition; serve defaults to 5.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty" flag:"webhook-timeout" value:"seconds"`
	// reviewVersions are the accepted versions of AdmissionReview, in order of preference.
	// If empty, those of each definition; serve defaults to v1 and v1beta1.
	ReviewVersions []string `json:"reviewVersions,omitempty" flag:"review-versions" value:"versions"`
	// foreignTerms is what the server does with selector terms and match conditions that
	// other clients add to its webhooks: it preserves them and reports them (Keep), or
	// removes them (Refuse). Only used if mode is API. Default Keep.
	ForeignTerms string `json:"foreignTerms" enum:"Keep,Refuse"`

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
	LeaderElect bool `json:"leaderElect" flag:"leader-elect" group:"Leader election"`
	// namespace is the namespace of the lease of controllers. If empty, that of the pod.
	// The other lease has the name and namespace of the Secret.
	Namespace string `json:"namespace,omitempty" flag:"leader-election-namespace" value:"namespace"`
	// leaseDuration is the time that other replicas wait before they take over from a leader
	// that stopped renewing its lease. Default 15s.
	LeaseDuration time.Duration `json:"leaseDuration" flag:"leader-elect-lease-duration" value:"time"`
	// renewDeadline is the time that a leader retries renewing its lease before it gives up
	// leadership. Default 10s.
	RenewDeadline time.Duration `json:"renewDeadline" flag:"leader-elect-renew-deadline" value:"time"`
	// retryPeriod is the time between two attempts to acquire or renew the lease. Default
	// 2s.
	RetryPeriod time.Duration `json:"retryPeriod" flag:"leader-elect-retry-period" value:"time"`
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
