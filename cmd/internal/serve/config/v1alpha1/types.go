// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/serve/tracing"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting/logging"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
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

	// kubeconfig is the path of the kubeconfig file. If empty, the service account of the
	// pod. A server whose webhooks read nothing from the cluster and that does not register
	// them needs neither.
	Kubeconfig string `json:"kubeconfig,omitempty" flag:"kubeconfig" value:"file" group:"API server"`
	// registration is how the API server reaches the webhooks, who registers them, and when
	// they are called.
	Registration registration.Settings `json:"registration"`
	// certificate is the source of the serving certificate.
	Certificate certificate.Settings `json:"certificate"`
	// leaderElection elects the replica that runs the controllers.
	LeaderElection registration.LeaderElectionSettings `json:"leaderElection"`
	// authentication is who may call the server.
	Authentication serving.AuthenticationSettings `json:"authentication"`
	// serving has the addresses, limits and timeouts of the server.
	Serving serving.Settings `json:"serving"`
	// log is what is logged, and how.
	Log logging.Settings `json:"log"`
	// tracing is where spans are exported.
	Tracing tracing.Settings `json:"tracing"`
	// recording is which reviews are recorded.
	Recording Recording `json:"recording"`
	// webhooks are the ready-made webhooks to run, in any order; in a flag their names, see
	// 'sallyport webhooks': foo enables foo, -foo disables it, * enables all that are not
	// named. Default poddefault.
	Webhooks []Webhook `json:"webhooks" flag:"webhooks" value:"names" group:"Webhooks"`
	// controllers are the names of controllers of the enabled webhooks: foo enables foo, -foo
	// disables it, * enables all that are not named, except poddefault-reports. If empty,
	// none. Default "*".
	Controllers []string `json:"controllers" flag:"controllers" value:"names" group:"Webhooks"`
}

// Webhook configures a ready-made webhook. If that consists of several webhooks, the fields
// apply to each of them.
type Webhook struct {
	// name is the name that `sallyport webhooks` prints. Required.
	Name string `json:"name"`
	// enabled is whether the webhook runs. Default true.
	Enabled *bool `json:"enabled,omitempty"`
	// failurePolicy overrides that of registration.
	FailurePolicy *string `json:"failurePolicy,omitempty" enum:"Fail,Ignore"`
	// timeoutSeconds overrides that of registration.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// path overrides the URL path of the entry's first webhook, and answers there for all
	// webhooks of the entry: a configuration written for another server has one path. It
	// takes effect at the next start.
	Path *string `json:"path,omitempty"`
	// paths overrides the URL paths of single webhooks of the entry, by their default names.
	// It takes effect at the next start.
	Paths map[string]string `json:"paths,omitempty"`
	// names overrides the names under which webhooks of the entry are registered, by their
	// default names. It takes effect at the next start. Not for poddefault, whose webhooks
	// commands find by name.
	Names map[string]string `json:"names,omitempty"`
	// matchPolicy is Exact or Equivalent. Default Equivalent.
	MatchPolicy *string `json:"matchPolicy,omitempty" enum:"Exact,Equivalent"`
	// reinvocationPolicy of mutating webhooks is Never or IfNeeded. Default IfNeeded.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty" enum:"Never,IfNeeded"`
	// namespaceSelector limits the webhook to objects in namespaces with matching labels, in
	// addition to its own selector and that of registration.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// objectSelector limits the webhook to objects with matching labels, in addition to its
	// own selector.
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`
	// matchConditions limit the requests that the webhook is called for, in addition to its
	// own conditions.
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
	// settings are specific to the webhook; see its documentation.
	Settings json.RawMessage `json:"settings,omitempty"`
}
