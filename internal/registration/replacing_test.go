// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"log/slog"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
)

// writtenPart is a policy or a binding that must not be written.
type writtenPart struct {
	managed
	t    *testing.T
	what string
}

func (p *writtenPart) kind() string { return p.what }
func (p *writtenPart) name() string { return "hooks" }
func (p *writtenPart) reconcile(context.Context, desired, metav1.Object, bool, bool) (outcome, error) {
	p.t.Errorf("%s is written", p.what)
	return outcome{}, nil
}

// readInformer is an informer that has read these objects, or has not synced if it has no
// store.
type readInformer struct {
	cache.SharedIndexInformer
	store cache.Store
}

func (i readInformer) HasSynced() bool { return i.store != nil }

func (i readInformer) GetStore() cache.Store {
	if i.store == nil {
		return cache.NewStore(cache.MetaNamespaceKeyFunc)
	}
	return i.store
}

// The controller does not overwrite a policy that reads another kind of parameter, before or after
// observing it. It deletes the policy, and the webhook fails closed until the next one is
// in force.
func TestAPolicyThatReadsAnotherKindOfParameterGoesFirst(t *testing.T) {
	w := admission.Mutating("inject.pods.example.com", []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}, admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	}))
	w.AllowWedge = "a test"
	w.Backstop = &admission.Backstop{
		Param: admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "PodTemplate"}, ParamName: "index",
		Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
	}
	other := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "Index"},
		},
	}
	for name, seen := range map[string]bool{"before it was seen": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			var policies, bindings readInformer
			if seen {
				policies.store, bindings.store = cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)
				if err := policies.store.Add(other); err != nil {
					t.Fatal(err)
				}
			}
			k, err := NewController(Options{
				Config: Config{Name: "hooks", Endpoint: Endpoint{URL: "https://127.0.0.1:1"}}, Logger: slog.New(slog.DiscardHandler),
				Client: fake.NewClientset().AdmissionregistrationV1(), CABundle: noCABundle,
				Webhooks: func() []admission.Webhook { return []admission.Webhook{w.Defaulted()} },
			})
			if err != nil {
				t.Fatal(err)
			}
			k.objects = []*object{
				{managed: &writtenPart{t: t, what: policyKind}, reconciler: k.policies, informer: policies},
				{managed: &writtenPart{t: t, what: bindingKind}, reconciler: k.policies, informer: bindings},
			}
			registered, _ := k.advanceBackstop(k.options.Webhooks())
			if registered[0].FailurePolicy != admissionregistrationv1.Fail || k.backstop.reported == "" {
				t.Errorf("it waits for %q, with the failure policy %s", k.backstop.reported, registered[0].FailurePolicy)
			}
			if seen {
				if k.backstop.state != backstopReplacing || k.backstop.desired.policy != nil {
					t.Errorf("%s: the policy is to be overwritten", k.backstop.state)
				}
				return
			}
			if k.backstop.state != backstopUnobserved {
				t.Errorf("it is %s", k.backstop.state)
			}
			k.reconcile(t.Context(), k.policies)
		})
	}
}
