// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func notIn(key string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}
}

func selecting(terms ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: terms}
}

// enforce rewrites the selector of the first webhook whenever it has changed, like a cloud
// provider's enforcer. It counts its writes.
func (k *harness) enforce(rewrite func(*metav1.LabelSelector) *metav1.LabelSelector) *atomic.Int32 {
	k.t.Helper()
	writes := &atomic.Int32{}
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := k.client.MutatingWebhookConfigurations().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + k.options.Config.Name})
	if err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watch.ResultChan() {
			live, ok := event.Object.(*admissionregistrationv1.MutatingWebhookConfiguration)
			if !ok || len(live.Webhooks) == 0 {
				continue
			}
			wanted := rewrite(live.Webhooks[0].NamespaceSelector)
			if cmp.Equal(wanted, live.Webhooks[0].NamespaceSelector) {
				continue
			}
			live.Webhooks[0].NamespaceSelector = wanted
			// A conflict is not a failure: the next event has the newer object.
			if _, err := k.client.MutatingWebhookConfigurations().Update(ctx, live, metav1.UpdateOptions{FieldManager: "enforcer"}); err == nil {
				writes.Add(1)
			}
		}
	}()
	k.t.Cleanup(func() { cancel(); watch.Stop(); <-ended })
	return writes
}

func testAdoption(t *testing.T, config *rest.Config) {
	w := webhook(admission.TypeMutating, "a.adoption.example.com")
	w.NamespaceSelector = selecting(notIn("kubernetes.io/metadata.name", "kube-system"))
	k := newController(t, config, "adoption", []admission.Webhook{w})
	k.options.Recheck = 10 * time.Millisecond // to apply repeatedly
	k.start()
	k.registered()
	theirs := metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}
	writes := k.enforce(func(s *metav1.LabelSelector) *metav1.LabelSelector {
		for _, term := range s.MatchExpressions {
			if term.Key == theirs.Key {
				return s
			}
		}
		out := s.DeepCopy()
		out.MatchExpressions = append(out.MatchExpressions, theirs)
		return out
	})
	k.eventually("the enforcer has written", func() bool { return writes.Load() == 1 })
	applies := k.metric("sallyport_registration_applies_total")
	k.eventually("more applies", func() bool { return k.metric("sallyport_registration_applies_total") > applies+6 })
	version := k.mutating().ResourceVersion
	applies = k.metric("sallyport_registration_applies_total")
	k.eventually("more applies", func() bool { return k.metric("sallyport_registration_applies_total") > applies+6 })
	if version != k.mutating().ResourceVersion {
		t.Error("the object is written again and again")
	}
	both := selecting(append(w.NamespaceSelector.MatchExpressions, theirs)...)
	if diff := cmp.Diff(both, k.mutating().Webhooks[0].NamespaceSelector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}

	// A change of ours is applied, without our obsolete term.
	w.NamespaceSelector = selecting(notIn("team", "platform"))
	k.define(w)
	k.eventually("our new term is there, and theirs", func() bool {
		return cmp.Equal(selecting(notIn("team", "platform"), theirs), k.mutating().Webhooks[0].NamespaceSelector)
	})
	k.setBundle(authority(t, "next"), nil)
	k.controller.Notify()
	k.registered()
	if repairs := k.metric("sallyport_registration_repairs_total"); repairs != 0 {
		t.Errorf("%v repairs of a selector that holds", repairs)
	}
}

func testFight(t *testing.T, config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broadcaster.Shutdown)

	w := webhook(admission.TypeMutating, "a.fight.example.com")
	w.NamespaceSelector = selecting(notIn("kubernetes.io/metadata.name", "kube-system"))
	k := newController(t, config, "fight", []admission.Webhook{w})
	k.options.Events = broadcaster.NewRecorder(scheme.Scheme, "sallyport")
	k.start()
	k.registered()
	began := time.Now()
	theirs := selecting(notIn("team", "theirs"))
	writes := k.enforce(func(*metav1.LabelSelector) *metav1.LabelSelector { return theirs })
	k.eventually("three repairs", func() bool { return k.metric("sallyport_registration_repairs_total") >= 3 })
	k.eventually("a change that was not put right at once", func() bool { return k.metric("sallyport_registration_conflicts_total") >= 3 })

	// The repair backoffs are 1 s, 2 s, 4 s …: n of them take 2ⁿ⁻¹-1 s.
	repairs, took := k.metric("sallyport_registration_repairs_total"), time.Since(began).Seconds()
	if most := 1 + math.Floor(math.Log2(took+1)); repairs > most {
		t.Errorf("%v repairs in %.1f s, at most %v are due", repairs, took, most)
	}
	if got := writes.Load(); float64(got) > repairs+2 {
		t.Errorf("the enforcer was provoked to %d writes by %v repairs", got, repairs)
	}
	k.eventually("the fight is the status", func() bool { return k.controller.Registered() != nil })

	var conflict []string
	k.eventually("there is an event", func() bool {
		list, err := client.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conflict = nil
		for _, event := range list.Items {
			if event.Regarding.Name == "fight" && event.Reason != "ForeignTerms" {
				conflict = append(conflict, event.Reason+" "+event.Regarding.Kind)
			}
		}
		return len(conflict) > 0
	})
	if diff := cmp.Diff([]string{"RegistrationConflict MutatingWebhookConfiguration"}, conflict); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func testFollower(t *testing.T, config *rest.Config) {
	w := webhook(admission.TypeMutating, "a.follower.example.com")
	k := newConverter(t, config, "follower", "pulleys")
	k.define(w)
	k.create(definition("pulleys"))
	var leads atomic.Bool
	k.options.Leading = leads.Load
	if _, err := must(registration.NewController(k.options)).Published(); err == nil {
		t.Error("a controller that never ran knows what is published")
	}
	k.start()
	k.eventually("it says that it waits for the leader", func() bool {
		_, err := k.controller.Published()
		return err == nil && k.controller.Registered() != nil && k.metric("sallyport_registration_registered") == 0
	})
	if !k.gone() || k.stanza("pulleys") != nil {
		t.Fatal("a follower wrote")
	}
	if got := must(k.controller.Published()); len(got) != 0 {
		t.Errorf("%d bundles of nothing", len(got))
	}

	leader := newConverter(t, config, "follower", "pulleys")
	leader.define(w)
	leader.setBundle(k.bundle(), nil)
	leader.start()
	leader.registered()
	k.registered() // it observes that the leader wrote the same
	if applies := k.metric("sallyport_registration_applies_total"); applies != 0 {
		t.Errorf("a follower called the API server to write, %v times", applies)
	}
	if got := must(k.controller.Published()); len(got) != 2 || !cmp.Equal(got[0], k.bundle()) || !cmp.Equal(got[1], k.bundle()) {
		t.Errorf("%d bundles, not those of the webhook and the definition", len(got))
	}

	// The replicas diverge: the follower observes that, and that the leader keeps writing.
	leader.setBundle(authority(t, "next"), nil)
	leader.controller.Notify()
	k.eventually("it sees another bundle", func() bool { return k.controller.Registered() != nil })
	k.eventually("it sees which", func() bool {
		got := must(k.controller.Published())
		return len(got) == 2 && cmp.Equal(got[0], leader.bundle()) && cmp.Equal(got[1], leader.bundle())
	})

	leader.stop()
	leads.Store(true)
	k.controller.Notify()
	k.registered()
	if !cmp.Equal(k.mutating().Webhooks[0].ClientConfig.CABundle, k.bundle()) {
		t.Error("the new leader did not write")
	}
	if repairs := k.metric("sallyport_registration_repairs_total"); repairs != 0 {
		t.Errorf("%v repairs of what the leader before wrote", repairs)
	}
}
