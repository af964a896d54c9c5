// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/serve/tracing"
	"github.com/sallyport-io/sallyport/internal/hosting/logging"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/serving/certificate"
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
	// service account. A server that calls no API server needs neither.
	Kubeconfig     string                              `json:"kubeconfig,omitempty"`
	Registration   registration.Settings               `json:"registration"`
	Certificate    certificate.Settings                `json:"certificate"`
	LeaderElection registration.LeaderElectionSettings `json:"leaderElection"`
	Authentication serving.AuthenticationSettings      `json:"authentication"`
	Serving        serving.Settings                    `json:"serving"`
	Log            logging.Settings                    `json:"log"`
	Tracing        tracing.Settings                    `json:"tracing"`
	Recording      Recording                           `json:"recording"`
	// Webhooks lists the ready-made webhooks to run, in any order. Default poddefault.
	Webhooks []Webhook `json:"webhooks"`
	// Controllers selects the controllers of the enabled webhooks: foo enables foo, -foo
	// disables it, * enables all that are not named, except poddefault-reports. An empty
	// list enables none. Default "*".
	Controllers []string `json:"controllers"`
}

// Webhook configures a ready-made webhook. If that consists of several webhooks, the fields
// apply to each of them.
type Webhook struct {
	// Name is the name that `sallyport webhooks` prints. Required.
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
