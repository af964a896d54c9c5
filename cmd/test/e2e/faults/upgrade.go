// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/test/lab"
)

// upgrade rolls three replicas of the previous release forward to this one, as a
// Deployment does, and back again. In the middle of each roll, with both releases side by
// side, nobody may write what the API server calls by: two that disagree would go on
// forever. A whole roll may change each configuration once, when the leader is of the other
// release. The authority stays the same.
func upgrade(ctx context.Context, c *cluster, rounds int, out *result) error {
	if c.settings.previous == "" {
		return fmt.Errorf("there is no binary of the previous release")
	}
	previous, err := buildAt(ctx, c.settings.previous)
	if err != nil {
		return err
	}
	current, err := buildAt(ctx, c.settings.binary)
	if err != nil {
		return err
	}
	var live []*replica
	// As people run it. A pod that nobody injects is refused by the policy, and counts as one
	// that failed.
	guard := []string{lab.Set("webhooks.poddefault.guard", "Backstop")}
	for range 3 {
		r, err := c.startReadyOf(ctx, previous, guard...)
		if err != nil {
			return err
		}
		if err := c.addEndpoint(ctx, r); err != nil {
			return err
		}
		live = append(live, r)
	}
	if err := c.awaitInjection(ctx); err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	// A policy does not stand in before every API server knows the definitions, which are new.
	if !lab.Sleep(ctx, time.Until(c.opened.Add(definitionsKnown))) {
		return ctx.Err()
	}
	if err := c.requireQuiet(ctx, "at the start", out); err != nil {
		return err
	}
	start, err := c.registered(ctx)
	if err != nil {
		return err
	}
	var old []*replica
	before, changes := start, 0
	for round := range 2 * rounds {
		to, direction := current, "forward"
		if round%2 == 1 {
			to, direction = previous, "back"
		}
		where := fmt.Sprintf("round %d, %s", round/2+1, direction)
		for i := range live {
			next, err := c.startReadyOf(ctx, to, guard...)
			if err != nil {
				return err
			}
			if err := c.replace(ctx, live[i], next); err != nil {
				return err
			}
			old = append(old, live[i])
			live[i] = next
			if i == 1 {
				if err := c.requireQuiet(ctx, where, out); err != nil {
					return err
				}
			}
		}
		// The last of the others may lead until it has drained.
		for _, err := range c.awaitAllDrained(ctx, old) {
			out.problemf("%s: %v", where, err)
		}
		old = nil
		if err := c.awaitLeader(ctx); err != nil {
			return err
		}
		if err := c.requireQuiet(ctx, where+", at its end", out); err != nil {
			return err
		}
		after, err := c.registered(ctx)
		if err != nil {
			return err
		}
		changes += compareRegistered(where, start, before, after, out)
		before = after
		if n := s.failuresSoFar(); n > 0 {
			c.progress.sayf("  %d failures so far", n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(start)) {
		if now, there := before[name]; !there || now.content != start[name].content {
			out.problemf("%s is not what it was before the first upgrade", name)
		}
	}
	out.notef("%d rolls, %d changes of %d objects", 2*rounds, changes, len(before))
	out.requireNothingLost(s.stop(ctx, out))
	if err := c.withdraw(ctx, live); err != nil {
		return err
	}
	// The other rows do without.
	registration := c.clients.AdmissionregistrationV1()
	if err := registration.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	return registration.ValidatingAdmissionPolicies().DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// definitionsKnown is when servers trust that every API server knows new definitions, and a
// little more.
const definitionsKnown = 50 * time.Second

// A registeredObject is one of those by which the API server finds the servers.
type registeredObject struct {
	uid, version, content string
	generation            int64 // of the API server, which counts changes of what matters; 0: it does not count
}

// registered returns them by kind and name.
func (c *cluster) registered(ctx context.Context) (map[string]registeredObject, error) {
	all := map[string]registeredObject{}
	var failed error
	note := func(kind string, meta metav1.ObjectMeta, content any) {
		text, err := json.Marshal(content)
		if err != nil {
			failed = err
		}
		sum := sha256.Sum256(text) // there is a key in it
		all[kind+" "+meta.Name] = registeredObject{string(meta.UID), meta.ResourceVersion, hex.EncodeToString(sum[:]), meta.Generation}
	}
	registration := c.clients.AdmissionregistrationV1()
	mutating, err := registration.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range mutating.Items {
		note("MutatingWebhookConfiguration", o.ObjectMeta, o.Webhooks)
	}
	validating, err := registration.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range validating.Items {
		note("ValidatingWebhookConfiguration", o.ObjectMeta, o.Webhooks)
	}
	policies, err := registration.ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range policies.Items {
		note("ValidatingAdmissionPolicy", o.ObjectMeta, o.Spec)
	}
	bindings, err := registration.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range bindings.Items {
		note("ValidatingAdmissionPolicyBinding", o.ObjectMeta, o.Spec)
	}
	secret, err := c.clients.CoreV1().Secrets(serviceNamespace).Get(ctx, authoritySecret, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	note("Secret", secret.ObjectMeta, secret.Data)
	return all, failed
}

// requireQuiet waits until nobody has written for a while, which must come soon.
func (c *cluster) requireQuiet(ctx context.Context, where string, out *result) error {
	const quiet, patience = 6 * time.Second, time.Minute
	var last map[string]registeredObject
	var changed []string
	for began := time.Now(); ; {
		now, err := c.registered(ctx)
		if err != nil {
			return err
		}
		if maps.Equal(last, now) {
			return nil
		}
		changed = changed[:0]
		for _, name := range namesIn(last, now) {
			if last[name] != now[name] {
				changed = append(changed, name)
			}
		}
		if time.Since(began) > patience {
			out.problemf("%s: after %s these still change: %s", where, patience, strings.Join(changed, ", "))
			return nil
		}
		last = now
		if !lab.Sleep(ctx, quiet) {
			return ctx.Err()
		}
	}
}

// namesIn are those in the one or the other, sorted.
func namesIn(a, b map[string]registeredObject) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// compareRegistered returns how often the objects changed in a roll, in which each may change
// twice. Those of the start, which the previous release had written, stay; others, which only
// this release has, may come and go.
func compareRegistered(where string, start, before, after map[string]registeredObject, out *result) (changes int) {
	for _, name := range namesIn(before, after) {
		was, is := before[name], after[name]
		_, always := start[name]
		n := 0
		switch {
		case !always && (is.uid == "") != (was.uid == ""):
			n = 1
		case is.uid == "":
			out.problemf("%s: %s is gone", where, name)
		case is.uid != was.uid:
			out.problemf("%s: %s was deleted and made anew", where, name)
		case is.generation > was.generation:
			n = int(is.generation - was.generation)
		case is.content != was.content:
			n = 1
		}
		if n > 2 {
			out.problemf("%s: %s changed %d times", where, name, n)
		}
		if n > 0 && name == "Secret "+authoritySecret {
			out.problemf("%s: the authority is another one", where)
		}
		changes += n
	}
	return changes
}
