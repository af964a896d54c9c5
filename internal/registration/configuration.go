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
	"github.com/sallyport-io/sallyport/internal/registration/ownership"
	"github.com/sallyport-io/sallyport/internal/registration/wedge"
)

// The label of objects that Sallyport created and may delete.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedByValue = "sallyport"
)

// Config is the configuration that all webhooks of an application share.
type Config struct {
	// Name is metadata.name of both objects: a DNS subdomain. The suffix .static.k8s.io is
	// reserved for configurations from files (KEP-5793). The API server calls mutating
	// configurations in the order of their names.
	Name string
	// Endpoint is the address of the webhook server.
	Endpoint Endpoint
	// ConversionEndpoint is the address of the conversion webhooks; nil means Endpoint. In
	// a cluster it is a separate Service with publishNotReadyAddresses: objects must be
	// readable before anything that reads them is ready.
	ConversionEndpoint *Endpoint
	// Labels and Annotations are set on both objects, in addition to [ManagedByLabel].
	Labels, Annotations map[string]string
	// Owner is the cluster-scoped owner of the objects, which are garbage-collected when it
	// is deleted; nil if they have no owner. Static manifests have none.
	Owner *metav1.OwnerReference
}

// Validate reports all problems.
func (c Config) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Subdomain(c.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("name %q: %s", c.Name, strings.Join(problems, "; ")))
	}
	if strings.HasSuffix(c.Name, ".static.k8s.io") {
		errs = append(errs, fmt.Errorf("name %q: the suffix .static.k8s.io is for configurations in files of kube-apiserver", c.Name))
	}
	if value, ok := c.Labels[ManagedByLabel]; ok && value != ManagedByValue {
		errs = append(errs, fmt.Errorf("label %s: must be %s, which identifies own objects", ManagedByLabel, ManagedByValue))
	}
	if c.ConversionEndpoint != nil {
		if err := c.ConversionEndpoint.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("conversion: %w", err))
		}
	}
	if o := c.Owner; o != nil && (o.APIVersion == "" || o.Kind == "" || o.Name == "" || o.UID == "") {
		errs = append(errs, errors.New("owner: apiVersion, kind, name and uid are required"))
	}
	return errors.Join(append(errs, c.Endpoint.Validate())...)
}

func (c Config) conversionEndpoint() Endpoint {
	if c.ConversionEndpoint != nil {
		return *c.ConversionEndpoint
	}
	return c.Endpoint
}

// Configurations are the desired objects as apply configurations: they contain only the
// fields that Sallyport owns.
type Configurations struct {
	// Mutating is nil if there are no mutating webhooks.
	Mutating *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration
	// Validating is nil if there are no validating webhooks.
	Validating *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration
}

// Build derives the desired objects from the definitions. The webhooks keep the given
// order; unset fields of a definition get their defaults, except that unset selectors are
// left to other managers. caBundle is PEM with at least one certificate; if it is empty,
// the field is left to other managers. A webhook that could block the whole cluster is
// rejected, unless its AllowWedge permits it.
//
// Build is deterministic. The error reports all problems of c and of the definitions.
func Build(c Config, webhooks []admission.Webhook, caBundle []byte) (Configurations, error) {
	errs := []error{c.Validate(), validateBundle(caBundle)}
	names, ownNamespace := map[string]bool{}, ""
	if s := c.Endpoint.Service; s != nil {
		ownNamespace = s.Namespace
	}
	for _, w := range webhooks {
		errs = append(errs, w.Problems())
		if names[w.Name] {
			errs = append(errs, fmt.Errorf("webhook %q: duplicate name", w.Name))
		}
		names[w.Name] = true
		for _, problem := range wedge.Of(w.Defaulted(), ownNamespace) {
			errs = append(errs, fmt.Errorf("webhook %q could block the whole cluster while its server is down: it fails closed, and %s; "+
				"or set AllowWedge to the reason to permit it", w.Name, problem))
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

// owners do not block deletion: that would require permissions on the owner.
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
	out.NamespaceSelector = ownership.Selector(w.NamespaceSelector)
	out.ObjectSelector = ownership.Selector(w.ObjectSelector)
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
	out.NamespaceSelector = ownership.Selector(w.NamespaceSelector)
	out.ObjectSelector = ownership.Selector(w.ObjectSelector)
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

// validateBundle rejects what the API server rejects, and PEM blocks that are not
// certificates: a private key among them would be readable by anyone.
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
			return fmt.Errorf("CA bundle: contains a PEM block %q; only CERTIFICATE is allowed", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("CA bundle: a certificate does not parse: %w", err)
		}
		found = true
	}
	if !found {
		return errors.New("CA bundle: contains no PEM certificate")
	}
	return nil
}
