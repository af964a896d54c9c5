// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/registration"
)

// RegistrationSettings configure how the API server reaches the webhooks, who registers
// them, and when they are called.
type RegistrationSettings struct {
	// Mode selects who writes the webhook configurations. Default [registration.ModeAPI].
	Mode registration.Mode
	// StaticManifestsDir is the absolute path of the directory for
	// [registration.ModeManifest].
	StaticManifestsDir string
	// Name is the name of the webhook configurations.
	Name string
	// Service is "namespace/name" or "namespace/name:port", URL is for a server outside the
	// cluster. One of them is required, except with SourceFiles and registration.ModeNone.
	Service, URL string
	// ConversionService is the Service through which the API server calls the converters,
	// if it is not Service. In a cluster it should be a separate one with
	// publishNotReadyAddresses, because the server may need converted objects to become
	// ready.
	ConversionService string
	// NamespaceSelector is a label selector that namespaces must match, in addition to
	// those of the definitions. Empty for all.
	NamespaceSelector string
	// ExcludedNamespaces are namespaces for which the webhooks are never called. The
	// namespace of Service is excluded too, unless SharedNamespace is set.
	ExcludedNamespaces []string
	// OwnPods is the label of the server's own pods, "key=value". In a shared namespace,
	// webhooks for pods are not called for pods with this label. Empty if there is none.
	OwnPods string
	// SharedNamespace is true if other workloads run in the namespace of Service, as in
	// Kubeflow's. Then it is not excluded.
	SharedNamespace bool
	// Owner is the ClusterRole that owns the webhook configurations, "clusterrole/NAME":
	// they are garbage-collected when it is deleted. It is looked up once, when the
	// application starts. Empty for none; for [registration.ModeAPI] only.
	Owner string
	// AllowWedge is the [admission.Webhook.AllowWedge] of all webhooks without one.
	AllowWedge string
	// FailurePolicy, TimeoutSeconds and ReviewVersions override those of the definitions,
	// unless they are empty.
	FailurePolicy  string
	TimeoutSeconds int32
	ReviewVersions []string
	// RefuseForeignTerms removes the selector terms and match conditions that other clients
	// add to the webhooks; see [registration.Options].
	RefuseForeignTerms bool
	// Adjust changes a definition after all of the above has been applied. It may be nil,
	// and must be deterministic.
	Adjust func(*admission.Webhook)

	// owner is the object that Owner names.
	owner *metav1.OwnerReference
}

var failurePolicies = []string{string(admissionregistrationv1.Fail), string(admissionregistrationv1.Ignore)}

// AddModeFlag adds the flag that selects who writes the webhook configurations.
func (s *RegistrationSettings) AddModeFlag(cmd *cobra.Command) {
	s.Mode = cmp.Or(s.Mode, registration.ModeAPI)
	cmd.Flags().Var(&s.Mode, "registration", "`mode` of registration: the server writes the webhook configurations through the API (api) or as static manifests for kube-apiserver (manifest), or does not write them (none)")
	completeModes(cmd)
}

// AddEndpointFlags adds the flags for the address of the server.
func (s *RegistrationSettings) AddEndpointFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Service, "service", s.Service,
		"the Service through which the API server calls a server inside the cluster, `namespace/name[:port]`")
	flags.StringVar(&s.URL, "url", s.URL,
		"`url` where the API server calls a server outside the cluster, for example https://127.0.0.1:9443")
}

// AddFlags adds the flags that control when the webhooks are called. The current values of
// the settings are the defaults.
func (s *RegistrationSettings) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Name, "configuration-name", s.Name,
		"`name` of the webhook configurations; the API server calls mutating webhook configurations in the order of their names")
	flags.StringVar(&s.NamespaceSelector, "namespace-selector", s.NamespaceSelector,
		"label `selector` of the namespaces to call the webhooks for, for example app.kubernetes.io/part-of=kubeflow-profile; empty for all")
	flags.StringSliceVar(&s.ExcludedNamespaces, "excluded-namespaces", s.ExcludedNamespaces,
		"`namespaces` for which the webhooks are never called; that of --service is excluded too, unless it is shared")
	flags.StringVar(&s.OwnPods, "own-pods", s.OwnPods,
		"`label` of the server's own pods, key=value, for which webhooks for pods are not called if the namespace of --service is shared; empty if they have none")
	flags.BoolVar(&s.SharedNamespace, "shared-namespace", s.SharedNamespace,
		"other workloads run in the namespace of --service: exclude only the pods of --own-pods, not the namespace")
	flags.StringVar(&s.AllowWedge, "allow-wedge", s.AllowWedge,
		"permit webhooks that can block the whole cluster while the server is down, for this `reason`")
	flags.StringVar(&s.FailurePolicy, "failure-policy", s.FailurePolicy,
		"`policy` if calling a webhook fails: reject the request (Fail) or admit the object unchanged (Ignore)")
	flags.Int32Var(&s.TimeoutSeconds, "webhook-timeout", s.TimeoutSeconds, "`seconds` that the API server waits for a webhook to respond, 1 to 30")
	flags.StringSliceVar(&s.ReviewVersions, "review-versions", s.ReviewVersions,
		"accepted `versions` of AdmissionReview, in order of preference")
	cli.CompleteChoices(cmd, "failure-policy", failurePolicies)
	cli.CompleteChoices(cmd, "review-versions", reviewversion.All())
}

// NoEndpoint reports whether the address of the server is not set.
func (s *RegistrationSettings) NoEndpoint() bool { return s.Service == "" && s.URL == "" }

// ValidateEndpoint reports every problem in --service and --url.
func (s *RegistrationSettings) ValidateEndpoint() error {
	switch {
	case s.NoEndpoint():
		return problemf("%s or %s is required: the API server must know where the webhooks are", setting("service"), setting("url"))
	case s.Service != "" && s.URL != "":
		return problemf("%s and %s are mutually exclusive: use %s for a server in the cluster", setting("service"), setting("url"), setting("service"))
	case s.URL != "":
		if err := (registration.Endpoint{URL: s.URL}).Validate(); err != nil {
			return problemf("%s: %w", setting("url"), err)
		}
		return nil
	}
	service, err := ParseService(s.Service)
	if err == nil {
		err = registration.Endpoint{Service: service}.Validate()
	}
	if err != nil {
		return problemf("%s: %w", setting("service"), err)
	}
	return nil
}

// Validate reports every problem in the other flags.
func (s *RegistrationSettings) Validate() error {
	var errs []error
	if s.FailurePolicy != "" {
		errs = append(errs, choice("failure-policy", s.FailurePolicy, failurePolicies))
	}
	// The rest of the configuration is valid, so any error is about the name.
	named := registration.Config{Name: s.Name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}}
	if err := named.Validate(); err != nil {
		errs = append(errs, problemf("%s: %w", setting("configuration-name"), err))
	}
	for _, namespace := range s.ExcludedNamespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, problemf("%s: %q: %s", setting("excluded-namespaces"), namespace, problem))
		}
	}
	if _, err := s.selector(); err != nil {
		errs = append(errs, err)
	}
	if problems := OwnPodsProblems(s.OwnPods); len(problems) > 0 {
		errs = append(errs, problemf("%s %q: %s", setting("own-pods"), s.OwnPods, strings.Join(problems, "; ")))
	}
	if s.TimeoutSeconds != 0 && (s.TimeoutSeconds < 1 || s.TimeoutSeconds > 30) {
		errs = append(errs, problemf("%s %d: the API server allows 1 to 30 seconds", setting("webhook-timeout"), s.TimeoutSeconds))
	}
	for i, version := range s.ReviewVersions {
		errs = append(errs, choice("review-versions", version, reviewversion.All()))
		if slices.Contains(s.ReviewVersions[:i], version) {
			errs = append(errs, problemf("%s: duplicate %s", setting("review-versions"), version))
		}
	}
	return errors.Join(errs...)
}

// Config is the configuration of registration. The settings must be valid.
func (s *RegistrationSettings) Config() registration.Config {
	config := registration.Config{Name: s.Name, Endpoint: registration.Endpoint{URL: s.URL}, Owner: s.owner}
	if service, err := ParseService(s.Service); err == nil {
		config.Endpoint.Service = service
	}
	config.ConversionEndpoint = s.conversionEndpoint()
	return config
}

// Apply returns the definitions with the settings applied.
func (s *RegistrationSettings) Apply(webhooks []admission.Webhook) ([]admission.Webhook, error) {
	selector, err := s.selector()
	if err != nil {
		return nil, err
	}
	var errs []error
	out := slices.Clone(webhooks)
	for i := range out {
		w := &out[i]
		w.NamespaceSelector = selectors.Both(w.NamespaceSelector, selector)
		s.excludeOwnPods(w)
		w.AllowWedge = cmp.Or(w.AllowWedge, s.AllowWedge)
		w.FailurePolicy = cmp.Or(admissionregistrationv1.FailurePolicyType(s.FailurePolicy), w.FailurePolicy)
		w.TimeoutSeconds = cmp.Or(s.TimeoutSeconds, w.TimeoutSeconds)
		if len(s.ReviewVersions) > 0 {
			w.ReviewVersions = s.ReviewVersions
		}
		if s.Adjust != nil {
			s.Adjust(w)
		}
		errs = append(errs, w.Validate())
	}
	return out, errors.Join(errs...)
}

// selector excludes namespaces that must work without the webhooks, first of all the
// server's own: otherwise it could not be restarted.
func (s *RegistrationSettings) selector() (*metav1.LabelSelector, error) {
	selector, err := metav1.ParseToLabelSelector(s.NamespaceSelector)
	if err != nil {
		return nil, problemf("%s: %w", setting("namespace-selector"), err)
	}
	excluded := slices.Clone(s.ExcludedNamespaces)
	if namespace, _, ok := strings.Cut(s.Service, "/"); ok && !s.SharedNamespace {
		excluded = append(excluded, namespace)
	}
	slices.Sort(excluded)
	if excluded = slices.Compact(excluded); len(excluded) > 0 {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: excluded,
		})
	}
	return selector, nil
}
