// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"

	"github.com/sallyport-io/sallyport/admission"
)

// never are terms that switch a webhook off.
const never = `{"webhooks":[{"name":"NAME","objectSelector":{"matchLabels":{"never":"x"}},"matchConditions":[{"name":"off","expression":"false"}]}]}`

// record sends events of the controller to the API server.
func (k *harness) record(config *rest.Config) {
	k.t.Helper()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kubernetes.NewForConfigOrDie(config).EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(broadcaster.Shutdown)
	k.options.Events = broadcaster.NewRecorder(scheme.Scheme, "sallyport")
}

// update changes the mutating configuration as a manager.
func (k *harness) update(manager string, change func(*admissionregistrationv1.MutatingWebhookConfiguration)) {
	k.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := k.mutating()
		change(live)
		_, err := k.client.MutatingWebhookConfigurations().Update(k.t.Context(), live, metav1.UpdateOptions{FieldManager: manager})
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// foreignEvents are the notes of events about foreign terms.
func (k *harness) foreignEvents(config *rest.Config) (notes []string) {
	k.t.Helper()
	list, err := kubernetes.NewForConfigOrDie(config).EventsV1().Events(metav1.NamespaceDefault).List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == "ForeignTerms" && e.Regarding.Name == k.options.Config.Name {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

func testReportsForeignTerms(t *testing.T, config *rest.Config) {
	const name = "a.narrowed.example.com"
	w := webhook(admission.TypeMutating, name)
	w.NamespaceSelector = selecting(notIn("kubernetes.io/metadata.name", "kube-system"))
	k := newController(t, config, "narrowed", []admission.Webhook{w, webhook(admission.TypeValidating, "b.narrowed.example.com")})
	var status atomic.Value
	status.Store("")
	k.options.ForeignTerms = func(description string) { status.Store(description) }
	k.record(config)
	k.start()
	k.registered()
	if got := k.metric("sallyport_registration_foreign_terms"); got != 0 || status.Load() != "" {
		t.Errorf("of its own webhooks it reports %v terms: %q", got, status.Load())
	}

	k.patch(strings.Replace(never, "NAME", name, 1))
	const want = "webhook " + name + ": objectSelector never=x (somebody); webhook " + name + ": matchConditions off (somebody)"
	k.eventually("the terms are counted", func() bool { return k.metric("sallyport_registration_foreign_terms") == 2 })
	k.eventually("the terms are the status", func() bool { return status.Load() == want })
	k.eventually("the terms are logged", func() bool { return strings.Contains(k.log.String(), want) })
	k.eventually("there is an event", func() bool {
		notes := k.foreignEvents(config)
		return len(notes) == 1 && strings.Contains(notes[0], want)
	})
	if live := k.mutating().Webhooks[0]; live.ObjectSelector.MatchLabels["never"] != "x" || len(live.MatchConditions) != 1 {
		t.Errorf("what another manager set is gone: %v %v", live.ObjectSelector, live.MatchConditions)
	}

	// Nobody hides terms by the server's name or by its record.
	k.update("sallyport", func(live *admissionregistrationv1.MutatingWebhookConfiguration) {
		live.Annotations["registration.sallyport.io/terms"] = `{"` + name + `":{"objectSelector":"never=x","matchConditions":["off"]}}`
	})
	k.eventually("the record is repaired", func() bool {
		return !strings.Contains(k.mutating().Annotations["registration.sallyport.io/terms"], "never")
	})
	if got := k.metric("sallyport_registration_foreign_terms"); got != 2 || !strings.Contains(status.Load().(string), "never=x") {
		t.Errorf("%v terms, status %q", got, status.Load())
	}

	// The server's own terms are no foreign ones, whoever wrote them first.
	w.ObjectSelector = selecting(metav1.LabelSelectorRequirement{Key: "never", Operator: metav1.LabelSelectorOpIn, Values: []string{"x"}})
	k.define(w)
	k.eventually("the term is ours", func() bool { return k.metric("sallyport_registration_foreign_terms") == 1 })
	w.ObjectSelector = nil
	k.define(w)
	k.update("somebody", func(live *admissionregistrationv1.MutatingWebhookConfiguration) {
		live.Webhooks[0].ObjectSelector, live.Webhooks[0].MatchConditions = nil, nil
	})
	k.eventually("no term is left", func() bool { return k.metric("sallyport_registration_foreign_terms") == 0 && status.Load() == "" })
}

func testRefusesForeignTerms(t *testing.T, config *rest.Config) {
	const name = "a.refusing.example.com"
	w := webhook(admission.TypeMutating, name)
	w.NamespaceSelector = selecting(notIn("kubernetes.io/metadata.name", "kube-system"))
	w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "own", Expression: "true"}}
	other := webhook(admission.TypeMutating, "b.refusing.example.com")
	k := newController(t, config, "refusing", []admission.Webhook{w, other})
	k.options.RefuseForeignTerms = true
	k.record(config)
	k.start()
	k.registered()

	k.patch(strings.Replace(never, "NAME", name, 1))
	clean := func() bool {
		live := k.mutating().Webhooks
		return len(live[0].ObjectSelector.MatchLabels) == 0 && cmp.Equal(w.MatchConditions, live[0].MatchConditions) &&
			cmp.Equal(w.NamespaceSelector, live[0].NamespaceSelector) && len(live[1].MatchConditions) == 0 && len(live[1].NamespaceSelector.MatchExpressions) == 0
	}
	k.eventually("the terms are removed", clean)
	k.eventually("the repair is counted", func() bool { return k.metric("sallyport_registration_repairs_total") == 1 })
	k.eventually("the removal is an event", func() bool {
		notes := k.foreignEvents(config)
		return len(notes) == 1 && strings.Contains(notes[0], "They are removed.")
	})

	k.patch(`{"webhooks":[{"name":"b.refusing.example.com","namespaceSelector":{"matchLabels":{"team":"x"}},"matchConditions":[{"name":"off","expression":"false"}]},` +
		`{"name":"` + name + `","namespaceSelector":{"matchLabels":{"team":"x"}}}]}`)
	k.eventually("the terms of namespaces are removed too", clean)
	k.eventually("nothing is left to report", func() bool { return k.metric("sallyport_registration_foreign_terms") == 0 })

	// Its own changes still come through, and everything goes when it is removed.
	w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "next", Expression: "true"}}
	k.define(w, other)
	k.eventually("a match condition of its own is replaced", clean)
	k.define()
	k.eventually("the configuration is deleted", k.gone)
}

// testBackstopFollowsNamespaces narrows a webhook with a backstop: the policy follows the
// terms for namespaces, and no others.
func testBackstopFollowsNamespaces(t *testing.T, config *rest.Config) {
	for name, tc := range map[string]struct {
		refuse bool
		want   *metav1.LabelSelector
	}{
		"keeping":  {false, selecting(notIn("kubernetes.io/metadata.name", "kube-system"), notIn("team", "urgent"))},
		"refusing": {true, selecting(notIn("kubernetes.io/metadata.name", "kube-system"))},
	} {
		t.Run(name, func(t *testing.T) {
			webhookName := "a.follows-" + name + ".example.com"
			w := webhook(admission.TypeMutating, webhookName)
			w.NamespaceSelector = selecting(notIn("kubernetes.io/metadata.name", "kube-system"))
			w.FailurePolicy = admissionregistrationv1.Fail
			w.AllowWedge = "the test denies nothing"
			w.Backstop = &admission.Backstop{
				Param: admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}, ParamName: "follows",
				Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
			}
			k := newController(t, config, "follows-"+name, []admission.Webhook{w})
			k.options.RefuseForeignTerms = tc.refuse
			k.start()
			policy := func() *admissionregistrationv1.ValidatingAdmissionPolicy {
				got, err := k.client.ValidatingAdmissionPolicies().Get(t.Context(), k.options.Config.Name, metav1.GetOptions{})
				if err != nil {
					return nil
				}
				return got
			}
			k.eventually("there is a policy", func() bool { return policy() != nil })
			k.patch(`{"webhooks":[{"name":"` + webhookName + `","objectSelector":{"matchLabels":{"never":"x"}},"namespaceSelector":{"matchExpressions":[` +
				`{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]},{"key":"team","operator":"NotIn","values":["urgent"]}]}}]}`)
			k.eventually("the policy is for the right namespaces", func() bool { return cmp.Equal(tc.want, policy().Spec.MatchConstraints.NamespaceSelector) })
			if tc.refuse {
				k.eventually("the webhook is too", func() bool { return cmp.Equal(tc.want, k.mutating().Webhooks[0].NamespaceSelector) })
			}
			if objects := policy().Spec.MatchConstraints.ObjectSelector; objects != nil && len(objects.MatchLabels) > 0 {
				t.Errorf("the policy excludes the objects that the webhook does: %v", objects)
			}
			k.define()
			k.eventually("the configuration is deleted", k.gone)
			for _, err := range []error{
				k.client.ValidatingAdmissionPolicyBindings().Delete(context.Background(), k.options.Config.Name, metav1.DeleteOptions{}),
				k.client.ValidatingAdmissionPolicies().Delete(context.Background(), k.options.Config.Name, metav1.DeleteOptions{}),
			} {
				_ = err // the controller may have been faster
			}
		})
	}
}
