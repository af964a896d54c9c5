// SPDX-License-Identifier: Apache-2.0

package hosting_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/test/lab"
)

// candidate is a leader that runs until stopped.
type candidate struct {
	*hosting.Leader
	stop func() error
}

func stand(t *testing.T, client coordinationv1.LeasesGetter, namespace, name string) *candidate {
	t.Helper()
	times := registration.LeaderElectionSettings{LeaseDuration: 6 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 100 * time.Millisecond}
	l, err := hosting.NewLeader(client, namespace, name, times, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	c := &candidate{Leader: l, stop: func() error { cancel(); err := <-done; done <- err; return err }}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// await waits until the candidate leads or stops leading.
func (c *candidate) await(t *testing.T, leading bool) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		changed := c.Changed()
		if c.Leading() == leading {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited in vain for leading to be %v", leading)
		}
	}
}

func TestLeaderElectionOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	namespace := lab.Namespace(t, config)
	client := kubernetes.NewForConfigOrDie(config).CoordinationV1()
	leases := client.Leases(namespace)
	holder := func(t *testing.T, name string) string {
		t.Helper()
		lease, err := leases.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			t.Fatalf("lease %+v, %v", lease, err)
		}
		return *lease.Spec.HolderIdentity
	}

	t.Run("one leads, and gives the lease up when it ends", func(t *testing.T) {
		first := stand(t, client, namespace, "handover")
		first.await(t, true)
		second := stand(t, client, namespace, "handover")
		identity := first.Identity()
		if got := holder(t, "handover"); got != identity {
			t.Errorf("%s holds the lease, want %s", got, identity)
		}
		if second.Leading() {
			t.Error("two lead")
		}
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}
		if first.Leading() {
			t.Error("who has ended still leads")
		}
		second.await(t, true)
		if got := holder(t, "handover"); got != second.Identity() {
			t.Errorf("%s holds the lease", got)
		}
	})

	t.Run("who loses the lease stands for election again", func(t *testing.T) {
		c := stand(t, client, namespace, "loss")
		c.await(t, true)
		lease, err := leases.Get(t.Context(), "loss", metav1.GetOptions{})
		for err == nil { // another client takes it between two renewals
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("somebody"), new(int32(2_000_000_000)) // for 60 years
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
			if _, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err == nil {
				break
			}
			lease, err = leases.Get(t.Context(), "loss", metav1.GetOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.await(t, false)
		c.await(t, true) // the holder is silent
		if got := holder(t, "loss"); got != c.Identity() {
			t.Errorf("%s holds the lease", got)
		}
	})
}

func TestWithoutElectionAReplicaLeads(t *testing.T) {
	var l *hosting.Leader
	if !l.Leading() || l.Changed() != nil {
		t.Error("a replica without election does not lead, or expects a change")
	}
}
