// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// oldestSupported is the oldest release of Kubernetes that is tested with.
const oldestSupported = "1.34.0"

// clockTransport notes what time it is for the API server.
type clockTransport struct {
	mu   sync.Mutex
	skew time.Duration // of the API server against this machine
	seen bool
}

// wrap is for [rest.Config.Wrap].
func (t *clockTransport) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		before := time.Now()
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		after := time.Now()
		// What is proxied has the date of somebody else; and the date has whole seconds.
		if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil && r.URL.Path == "/version" && after.Sub(before) < 5*time.Second {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.skew, t.seen = date.Add(500*time.Millisecond).Sub(before.Add(after.Sub(before)/2)), true
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// checkAPIServer returns an error if there is nobody to ask.
func (d *doctor) checkAPIServer() error {
	const check = "api-server"
	info, err := d.Client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err == nil && version.LessThan(utilversion.MustParseGeneric(oldestSupported)) {
		d.fix(check, "Sallyport is tested with Kubernetes 1.34 to 1.37", "it is Kubernetes %s", info.GitVersion)
		return nil
	}
	d.ok(check, "Kubernetes %s answers", info.GitVersion)
	return nil
}

// tolerance is how far clocks may be apart: certificates are made to be valid from a
// few minutes ago on, and leases last 15 s.
const tolerance = 5 * time.Second

func (d *doctor) checkClock() {
	const check = "clock"
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	switch {
	case !d.clock.seen:
		d.skip(check, "the API server does not say what time it is")
	case d.clock.skew.Abs() > tolerance:
		d.fix(check, "synchronise clocks: certificates and leases are judged by them", "the clock of the API server differs from the one here by %s", d.clock.skew.Round(time.Second))
	default:
		d.ok(check, "the API server's and the one here agree")
	}
}

// longestLease is longer than any replica is told to wait for a leader that is silent.
const longestLease = 10 * time.Minute

// checkLeader looks at the lease by which replicas elect the one that writes. Its times
// are by the clock of the one that holds it.
func (d *doctor) checkLeader(ctx context.Context) {
	const check = "leader"
	of, ok := d.authority()
	if !ok {
		d.skip(check, "a server without a Secret for its authority elects none")
		return
	}
	name := of.Namespace + "/" + of.Name
	lease, err := of.Lease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		d.skip(check, "there is no lease %s: leader election is off, or no server has started yet", name)
		return
	case err != nil:
		d.unread(check, "get Lease "+name, err)
		return
	}
	silent := time.Now().Add(d.clock.skew).Sub(lease.Renewed)
	switch {
	case lease.Holder == "":
		d.fix(check, "see the logs of the replicas: one of them should take it", "nobody holds the lease %s: nothing is written or rotated", name)
	case lease.Duration > longestLease:
		d.fix(check, "delete the lease, and see who may write leases in "+of.Namespace, "%s has taken the lease %s for %.0f s: nothing is written or rotated until it has been silent for a while",
			lease.Holder, name, lease.Duration.Seconds())
	case silent > lease.Duration:
		d.fix(check, "see whether it runs, and whether it reaches the API server; the others take over if they can", "%s leads, and has been silent for %s", lease.Holder, silent.Round(time.Second))
	case silent < -tolerance:
		d.fix(check, "synchronise clocks", "the clock of %s, which leads, is ahead by %s", lease.Holder, (-silent).Round(time.Second))
	default:
		d.ok(check, "%s leads", lease.Holder)
	}
}
