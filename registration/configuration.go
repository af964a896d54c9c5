// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// The label that says that Sallyport made an object and may delete it.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedByValue = "sallyport"
)

// Config is what all webhooks of an application have in common.
type Config struct {
	// Name is metadata.name of both objects: a DNS subdomain. The suffix
	// .static.k8s.io belongs to configurations from files (KEP-5793).
	// The API server calls mutating configurations in the order of their names.
	Name string
	// Endpoint is where the server of the webhooks is.
	Endpoint Endpoint
	// ConversionEndpoint is where the server of conversion webhooks is; nil means
	// Endpoint. In a cluster it is a Service of its own with
	// publishNotReadyAddresses: objects must be readable before anything that reads
	// them is ready.
	ConversionEndpoint *Endpoint
	// Labels and Annotations go on both objects, in addition to [ManagedByLabel].
	Labels, Annotations map[string]string
	// Owner is something cluster-scoped, with whose deletion the objects go too; nil if
	// they have no owner. Static manifests have none.
	Owner *metav1.OwnerReference
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Subdomain(c.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("name %q: %s", c.Name, strings.Join(problems, "; ")))
	}
	if strings.HasSuffix(c.Name, ".static.k8s.io") {
		errs = append(errs, fmt.Errorf("name %q: the suffix .static.k8s.io is for configurations in files of kube-apiserver", c.Name))
	}
	if value, ok := c.Labels[ManagedByLabel]; ok && value != ManagedByValue {
		errs = append(errs, fmt.Errorf("label %s: must be %s, by which own objects are recognised", ManagedByLabel, ManagedByValue))
	}
	if c.ConversionEndpoint != nil {
		if err := c.ConversionEndpoint.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("conversion: %w", err))
		}
	}
	if o := c.Owner; o != nil && (o.APIVersion == "" || o.Kind == "" || o.Name == "" || o.UID == "") {
		errs = append(errs, errors.New("owner: apiVersion, kind, name and uid are needed"))
	}
	return errors.Join(append(errs, c.Endpoint.Validate())...)
}

func (c Config) conversionEndpoint() Endpoint {
	if c.ConversionEndpoint != nil {
		return *c.ConversionEndpoint
	}
	return c.Endpoint
}

// Configurations are the wanted objects, as apply configurations: they hold the
// fields that Sallyport owns and no others.
type Configurations struct {
	// Mutating is nil if there are no mutating webhooks.
	Mutating *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration
	// Validating is nil if there are no validating webhooks.
	Validating *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration
}

// Build derives the wanted objects from the definitions. The webhooks stand in
// the order given; fields that a definition leaves unset get its defaults, save
// for selectors: an unset selector is left to others. caBundle is PEM, with at
// least one certificate; if it is empty, the field is left to others.
// A webhook that could bring the cluster to a halt is refused, unless its
// AllowWedge says why it may.
//
// Equal input gives equal output. The error names every mistake of c and of the
// definitions.
func Build(c Config, webhooks []admission.Webhook, caBundle []byte) (Configurations, error) {
	errs := []error{c.Validate(), validateBundle(caBundle)}
	names := map[string]bool{}
	for _, w := range webhooks {
		errs = append(errs, w.Validate())
		if names[w.Name] {
			errs = append(errs, fmt.Errorf("webhook %q: the name is used twice", w.Name))
		}
		names[w.Name] = true
		for _, wedge := range wedges(w.Defaulted(), c) {
			errs = append(errs, fmt.Errorf("webhook %q could bring the cluster to a halt while its server is away: it fails closed, and %s; "+
				"or say with AllowWedge why it may", w.Name, wedge))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Configurations{}, fmt.Errorf("webhook configurations cannot be built: %w", err)
	}

	var out Configurations
	for _, w := range webhooks {
		w = w.Defaulted()
		switch w.Type {
		case admission.TypeMutating:
			if out.Mutating == nil {
				out.Mutating = c.mutating().WithAnnotations(c.lintAnnotation(webhooks, w.Type))
			}
			out.Mutating.WithWebhooks(mutatingWebhook(c.Endpoint, w, caBundle))
		case admission.TypeValidating:
			if out.Validating == nil {
				out.Validating = c.validating().WithAnnotations(c.lintAnnotation(webhooks, w.Type))
			}
			out.Validating.WithWebhooks(validatingWebhook(c.Endpoint, w, caBundle))
		}
	}
	return out, nil
}

// mutating is the object without webhooks.
func (c Config) mutating() *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration {
	return admissionregistrationac.MutatingWebhookConfiguration(c.Name).WithLabels(c.labels()).WithAnnotations(c.Annotations).
		WithOwnerReferences(c.owners()...)
}

// validating is the object without webhooks.
func (c Config) validating() *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration {
	return admissionregistrationac.ValidatingWebhookConfiguration(c.Name).WithLabels(c.labels()).WithAnnotations(c.Annotations).
		WithOwnerReferences(c.owners()...)
}

// owners block no deletion: that would take rights over the owner.
func (c Config) owners() []*metav1ac.OwnerReferenceApplyConfiguration {
	if c.Owner == nil {
		return nil
	}
	return []*metav1ac.OwnerReferenceApplyConfiguration{metav1ac.OwnerReference().
		WithAPIVersion(c.Owner.APIVersion).WithKind(c.Owner.Kind).WithName(c.Owner.Name).WithUID(c.Owner.UID)}
}

func (c Config) labels() map[string]string {
	labels := map[string]string{ManagedByLabel: ManagedByValue}
	maps.Copy(labels, c.Labels)
	return labels
}

func mutatingWebhook(e Endpoint, w admission.Webhook, caBundle []byte) *admissionregistrationac.MutatingWebhookApplyConfiguration {
	out := admissionregistrationac.MutatingWebhook().
		WithName(w.Name).
		WithClientConfig(e.clientConfig(w.Path, caBundle)).
		WithRules(rules(w.Rules)...).
		WithMatchConditions(matchConditions(w.MatchConditions)...).
		WithMatchPolicy(w.MatchPolicy).
		WithFailurePolicy(w.FailurePolicy).
		WithTimeoutSeconds(w.TimeoutSeconds).
		WithSideEffects(w.SideEffects).
		WithReinvocationPolicy(w.ReinvocationPolicy).
		WithAdmissionReviewVersions(w.ReviewVersions...)
	out.NamespaceSelector = selector(w.NamespaceSelector)
	out.ObjectSelector = selector(w.ObjectSelector)
	return out
}

func validatingWebhook(e Endpoint, w admission.Webhook, caBundle []byte) *admissionregistrationac.ValidatingWebhookApplyConfiguration {
	out := admissionregistrationac.ValidatingWebhook().
		WithName(w.Name).
		WithClientConfig(e.clientConfig(w.Path, caBundle)).
		WithRules(rules(w.Rules)...).
		WithMatchConditions(matchConditions(w.MatchConditions)...).
		WithMatchPolicy(w.MatchPolicy).
		WithFailurePolicy(w.FailurePolicy).
		WithTimeoutSeconds(w.TimeoutSeconds).
		WithSideEffects(w.SideEffects).
		WithAdmissionReviewVersions(w.ReviewVersions...)
	out.NamespaceSelector = selector(w.NamespaceSelector)
	out.ObjectSelector = selector(w.ObjectSelector)
	return out
}

func rules(in []admissionregistrationv1.RuleWithOperations) []*admissionregistrationac.RuleWithOperationsApplyConfiguration {
	out := make([]*admissionregistrationac.RuleWithOperationsApplyConfiguration, 0, len(in))
	for _, r := range in {
		rule := admissionregistrationac.RuleWithOperations().
			WithOperations(r.Operations...).
			WithAPIGroups(r.APIGroups...).
			WithAPIVersions(r.APIVersions...).
			WithResources(r.Resources...)
		rule.Scope = r.Scope
		out = append(out, rule)
	}
	return out
}

func matchConditions(in []admissionregistrationv1.MatchCondition) []*admissionregistrationac.MatchConditionApplyConfiguration {
	out := make([]*admissionregistrationac.MatchConditionApplyConfiguration, 0, len(in))
	for _, m := range in {
		out = append(out, admissionregistrationac.MatchCondition().WithName(m.Name).WithExpression(m.Expression))
	}
	return out
}

// selector keeps the difference between unset (left to others) and empty (owned,
// selects all).
func selector(in *metav1.LabelSelector) *metav1ac.LabelSelectorApplyConfiguration {
	if in == nil {
		return nil
	}
	out := metav1ac.LabelSelector().WithMatchLabels(in.MatchLabels)
	for _, e := range in.MatchExpressions {
		out.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(e.Key).WithOperator(e.Operator).WithValues(e.Values...))
	}
	return out
}

// validateBundle refuses what the API server refuses, and PEM blocks that are no
// certificates: a private key among them would be there for everybody to read.
func validateBundle(caBundle []byte) error {
	if len(caBundle) == 0 {
		return nil
	}
	rest, found := caBundle, false
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("CA bundle: holds a PEM block %q; only CERTIFICATE belongs there", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("CA bundle: a certificate does not parse: %w", err)
		}
		found = true
	}
	if !found {
		return errors.New("CA bundle: holds no PEM certificate")
	}
	return nil
}
