// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/test/lab"
)

// healingLimit is how long the configuration may be wrong.
const healingLimit = 5 * time.Second

// healing corrupts the caBundle of the webhook configuration, and by turns deletes it,
// as a person would who errs. Whoever insists, by doing so again within a minute, is
// answered more and more slowly; so each round has replicas of its own, that know
// nothing of the round before.
func healing(ctx context.Context, c *cluster, rounds int, out *result) error {
	live, err := c.deploy(ctx, 2)
	if err != nil {
		return err
	}
	if err := c.awaitLeader(ctx); err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	foreign, err := os.ReadFile(c.config.CAFile)
	if err != nil {
		return err
	}
	configurations := c.clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	var periods []period
	var slowest time.Duration
	expected := 0 // un-injected, while there was no configuration
	var old []*replica
	for round := range rounds {
		good, err := configurations.Get(ctx, configurationName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		from := time.Now()
		before := s.observer.uninjectedSoFar()
		deleted := round%2 == 1
		if deleted {
			err = configurations.Delete(ctx, configurationName, metav1.DeleteOptions{})
		} else {
			patch := `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"bm90IGEgY2VydGlmaWNhdGU="}]`
			if round%4 == 0 {
				// A certificate, but another one.
				patch = fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%q}]`, base64.StdEncoding.EncodeToString(foreign))
			}
			_, err = configurations.Patch(ctx, configurationName, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "a-person"})
		}
		if err != nil {
			return err
		}
		if err := lab.Await(ctx, time.Minute, "the configuration to be put right", func(ctx context.Context) error {
			now, err := configurations.Get(ctx, configurationName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return sameWebhooks(good, now)
		}); err != nil {
			return err
		}
		healed := time.Now()
		took := healed.Sub(from)
		slowest = max(slowest, took)
		if took > healingLimit && !c.settings.short { // which shares its machine with others
			out.problemf("round %d: put right after %s", round, took.Round(time.Millisecond))
		}
		periods = append(periods, period{from: from, to: healed.Add(c.propagation())})
		if !lab.Sleep(ctx, 2*time.Second) { // all that was created meanwhile is stored and seen
			return ctx.Err()
		}
		if n := s.observer.uninjectedSoFar() - before; deleted {
			expected += n
		} else if n > 0 {
			out.problemf("round %d: %d pods were stored un-injected because of a wrong caBundle", round, n)
		}
		old = append(old, live...)
		if live, err = c.supersede(ctx, live); err != nil {
			return err
		}
	}
	t := s.stop(ctx, out)
	for _, err := range c.awaitAllDrained(ctx, old) {
		out.problemf("%v", err)
	}
	out.requireNoFailure(outside(t.failures, periods), " while the configuration was right")
	if out.Uninjected != expected {
		out.problemf("%d pods were stored un-injected, %d of them while there was no configuration", out.Uninjected, expected)
	}
	out.notef("right again at the latest after %.2f s; un-injected only while there was no configuration", slowest.Seconds())
	return c.withdraw(ctx, live)
}

// supersede puts others in the place of replicas, which drain; one of the others leads. They
// are not killed: the API server's open connections to them outlive their endpoints.
func (c *cluster) supersede(ctx context.Context, old []*replica) ([]*replica, error) {
	var live []*replica
	for range old {
		r, err := c.startReady(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.addEndpoint(ctx, r); err != nil {
			return nil, err
		}
		live = append(live, r)
	}
	for _, r := range old {
		if _, err := c.removeEndpoint(ctx, r); err != nil {
			return nil, err
		}
	}
	for _, r := range old {
		r.terminate()
	}
	if err := c.dropLeases(ctx); err != nil {
		return nil, err
	}
	return live, c.awaitLeader(ctx)
}

// sameWebhooks compares what was with what is.
func sameWebhooks(was, is *admissionregistrationv1.MutatingWebhookConfiguration) error {
	if len(was.Webhooks) != len(is.Webhooks) {
		return errors.New("the number of webhooks is another one")
	}
	for i := range was.Webhooks {
		if !bytes.Equal(was.Webhooks[i].ClientConfig.CABundle, is.Webhooks[i].ClientConfig.CABundle) {
			return fmt.Errorf("the caBundle of %s is another one", was.Webhooks[i].Name)
		}
	}
	return nil
}
