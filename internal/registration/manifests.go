// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
)

// Manifests returns the objects that a [Controller] would apply, as plain objects with apiVersion
// and kind, for printing: policy and binding of an enabled backstop, the mutating
// configuration, then the validating one, each only if it has webhooks. See [Build] for the
// parameters and errors.
func Manifests(c Config, webhooks []admission.Webhook, caBundle []byte) ([]runtime.Object, error) {
	policies, err := buildPolicies(c, webhooks)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	if policies.policy != nil {
		policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		if err := errors.Join(convert(policies.policy, policy), convert(policies.binding, binding)); err != nil {
			return nil, err
		}
		out = append(out, policy, binding)
	}
	// Validate the webhook as it is without its backstop.
	configurations, err := Build(c, webhooks, caBundle)
	if err == nil && policies.policy != nil {
		configurations, err = Build(c, failOpen(webhooks), caBundle)
	}
	if err != nil {
		return nil, err
	}
	if configurations.Mutating != nil {
		object := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := convert(configurations.Mutating, object); err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	if configurations.Validating != nil {
		object := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := convert(configurations.Validating, object); err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// convert goes through JSON, in which an apply configuration is a plain object without its
// unset fields.
func convert(applyConfiguration, object any) error {
	data, err := json.Marshal(applyConfiguration)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, object); err != nil {
		return fmt.Errorf("apply configuration into %T: %w", object, err)
	}
	return nil
}

// ConversionManifest returns spec.conversion for a CustomResourceDefinition. caBundle is as for
// [Build].
func ConversionManifest(c Config, conversion Conversion, caBundle []byte) (*apiextensionsv1.CustomResourceConversion, error) {
	stanzas, err := buildConversions(c, []Conversion{conversion}, caBundle)
	if err != nil {
		return nil, err
	}
	out := &apiextensionsv1.CustomResourceConversion{}
	return out, convert(stanzas[conversion.CRD].Spec.Conversion, out)
}
