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
	"github.com/sallyport-io/sallyport/internal/selectors"
	"github.com/sallyport-io/sallyport/registration"
)

// RegistrationSettings say how the API server reaches the webhooks, who tells it, and
// when it calls them.
type RegistrationSettings struct {
	// Mode says who writes the webhook configurations. Default [registration.ModeAPI].
	Mode registration.Mode
	// StaticManifestsDir is for [registration.ModeManifest]: an absolute path.
	StaticManifestsDir string
	// Name is that of the webhook configurations.
	Name string
	// Service is "namespace/name" or "namespace/name:port", URL is for a server outside
	// of the cluster. One of them is needed, but for files and registration.ModeNone.
	Service, URL string
	// ConversionService is that by which the API server reaches the converters, if it
	// is not Service. In a cluster it should be one of its own, with
	// publishNotReadyAddresses: what makes the server ready may need them.
	ConversionService string
	// NamespaceSelector is a label selector that namespaces must match, in addition to
	// those of the definitions. Empty for all.
	NamespaceSelector string
	// ExcludedNamespaces are names of namespaces that the webhooks are never called
	// for, and nor is the one of Service, unless it is shared.
	ExcludedNamespaces []string
	// OwnPods is the label of the pods of this server, "key=value": in a SharedNamespace
	// webhooks for pods are not called for them. Empty if there is none.
	OwnPods string
	// SharedNamespace is set if others use the namespace of Service too, as
	// Kubeflow's: it is not excluded then.
	SharedNamespace bool
	// Owner is "clusterrole/NAME": with that ClusterRole's deletion the webhook
	// configurations go too. It is looked up once, when the application starts. Empty
	// for none; for [registration.ModeAPI] only.
	Owner string
	// AllowWedge is [admission.Webhook.AllowWedge] for all webhooks that have none.
	AllowWedge string
	// FailurePolicy, TimeoutSeconds and ReviewVersions take the place of what the
	// definitions say; empty leaves them.
	FailurePolicy  string
	TimeoutSeconds int32
	ReviewVersions []string
	// Adjust changes a definition when all of the above has been applied; nil for no
	// change. It must give the same result each time.
	Adjust func(*admission.Webhook)

	// owner is Owner, found.
	owner *metav1.OwnerReference
}

var (
	failurePolicies = []string{string(admissionregistrationv1.Fail), string(admissionregistrationv1.Ignore)}
	reviewVersions  = []string{"v1", "v1beta1"}
)

// AddModeFlag adds the flag that says who writes the webhook configurations.
func (s *RegistrationSettings) AddModeFlag(cmd *cobra.Command) {
	s.Mode = cmp.Or(s.Mode, registration.ModeAPI)
	cmd.Flags().Var(&s.Mode, "registration", "`who` writes the webhook configurations: the server itself, to the API server (api) or as files that kube-apiserver reads (manifest), or somebody else (none)")
	completeModes(cmd)
}

// AddEndpointFlags adds the flags that say where the API server finds the server.
func (s *RegistrationSettings) AddEndpointFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Service, "service", s.Service,
		"the Service by which the API server reaches the server inside the cluster, `namespace/name[:port]`")
	flags.StringVar(&s.URL, "url", s.URL,
		"the `url` by which the API server reaches the server outside of the cluster, for example https://127.0.0.1:9443")
}

// AddFlags adds the flags that say when the webhooks are called. The values that the
// settings have now are the defaults.
func (s *RegistrationSettings) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Name, "configuration-name", s.Name,
		"`name` of the webhook configurations; the API server calls mutating ones in the order of their names")
	flags.StringVar(&s.NamespaceSelector, "namespace-selector", s.NamespaceSelector,
		"label `selector` of the namespaces that the webhooks are for, for example app.kubernetes.io/part-of=kubeflow-profile; empty for all")
	flags.StringSliceVar(&s.ExcludedNamespaces, "excluded-namespaces", s.ExcludedNamespaces,
		"`namespaces` that the webhooks are never called for; that of --service is excluded as well, unless it is shared")
	flags.StringVar(&s.OwnPods, "own-pods", s.OwnPods,
		"`label` of the pods of this server, key=value, which webhooks for pods are not called for in the namespace of --service, if that is shared; empty if they have none")
	flags.BoolVar(&s.SharedNamespace, "shared-namespace", s.SharedNamespace,
		"others use the namespace of --service too: do not exclude it, only the pods of --own-pods")
	flags.StringVar(&s.AllowWedge, "allow-wedge", s.AllowWedge,
		"`reason` why webhooks may be registered that can bring the cluster to a halt while the server is away")
	flags.StringVar(&s.FailurePolicy, "failure-policy", s.FailurePolicy,
		"`policy` for an object whose webhook fails: refuse it (Fail) or admit it as it is (Ignore)")
	flags.Int32Var(&s.TimeoutSeconds, "webhook-timeout", s.TimeoutSeconds, "`seconds` that the API server waits for a webhook, from 1 to 30")
	flags.StringSliceVar(&s.ReviewVersions, "review-versions", s.ReviewVersions,
		"`versions` of AdmissionReview that are spoken, the preferred one first")
	cli.CompleteChoices(cmd, "failure-policy", failurePolicies)
	cli.CompleteChoices(cmd, "review-versions", reviewVersions)
}

// NoEndpoint tells whether nothing says where the server is.
func (s *RegistrationSettings) NoEndpoint() bool { return s.Service == "" && s.URL == "" }

// ValidateEndpoint reports every problem in --service and --url.
func (s *RegistrationSettings) ValidateEndpoint() error {
	switch {
	case s.NoEndpoint():
		return problemf("%s or %s is needed: the API server must know where the webhooks are", setting("service"), setting("url"))
	case s.Service != "" && s.URL != "":
		return problemf("%s and %s exclude each other: choose %s for a server in the cluster", setting("service"), setting("url"), setting("service"))
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
	// The rest of the configuration is good; what remains is about the name.
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
		errs = append(errs, choice("review-versions", version, reviewVersions))
		if slices.Contains(s.ReviewVersions[:i], version) {
			errs = append(errs, problemf("%s: %s stands there twice", setting("review-versions"), version))
		}
	}
	return errors.Join(errs...)
}

// Config is what the settings say about the configuration objects; they were
// validated.
func (s *RegistrationSettings) Config() registration.Config {
	config := registration.Config{Name: s.Name, Endpoint: registration.Endpoint{URL: s.URL}, Owner: s.owner}
	if service, err := ParseService(s.Service); err == nil {
		config.Endpoint.Service = service
	}
	config.ConversionEndpoint = s.conversionEndpoint()
	return config
}

// Apply returns the definitions as the settings want them registered.
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

// selector keeps the webhooks away from namespaces that must work without them,
// this server's own first of all: otherwise nothing could start it again.
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
