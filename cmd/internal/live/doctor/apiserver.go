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

	"github.com/sallyport-io/sallyport/internal/install/authority"
	"github.com/sallyport-io/sallyport/internal/kube/transport"
)

// oldestSupported is the oldest tested release of Kubernetes.
const oldestSupported = "1.34.0"

// clockTransport measures the API server's clock skew.
type clockTransport struct {
	mu   sync.Mutex
	skew time.Duration // the API server's clock relative to this machine's
	seen bool
}

// wrap is for [rest.Config.Wrap].
func (t *clockTransport) wrap(next http.RoundTripper) http.RoundTripper {
	return transport.Around(next, func(r *http.Request) (*http.Response, error) {
		before := time.Now()
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		after := time.Now()
		// Proxied answers have another server's date. The header has a resolution of one
		// second.
		if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil && r.URL.Path == "/version" && after.Sub(before) < 5*time.Second {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.skew, t.seen = date.Add(500*time.Millisecond).Sub(before.Add(after.Sub(before)/2)), true
		}
		return resp, err
	})
}

// checkAPIServer returns an error if the API server cannot be reached.
func (d *doctor) checkAPIServer() error {
	const check = "api-server"
	info, err := d.Client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err == nil && version.LessThan(utilversion.MustParseGeneric(oldestSupported)) {
		d.Fix(check, "Sallyport is tested with Kubernetes 1.34 to 1.37", "it is Kubernetes %s", info.GitVersion)
		return nil
	}
	d.OK(check, "Kubernetes %s answers", info.GitVersion)
	return nil
}

// tolerance is the allowed clock skew: new certificates are valid from a few minutes ago, and
// leases last 15 s.
const tolerance = 5 * time.Second

func (d *doctor) checkClock() {
	const check = "clock"
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	switch {
	case !d.clock.seen:
		d.Skip(check, "the API server does not send its time")
	case d.clock.skew.Abs() > tolerance:
		d.Fix(check, "synchronize clocks: certificates and leases depend on them", "the clock of the API server differs from the local one by %s", d.clock.skew.Round(time.Second))
	default:
		d.OK(check, "the API server's clock and the local one agree")
	}
}

// maxLease exceeds any sensible lease duration.
const maxLease = 10 * time.Minute

// checkLeader checks the lease of the replica that writes, and the server's other leases, for
// example of the replica that runs controllers.
func (d *doctor) checkLeader(ctx context.Context) {
	const check = "leader"
	of, ok := d.authority()
	if !ok {
		d.Skip(check, "a server that keeps its authority in memory elects none; of another, --authority-secret says where it is")
		return
	}
	if !d.checkLease(ctx, of, "leads", "nothing is written or rotated") {
		d.Skip(check, "there is no lease %s/%s: leader election is off, or no server has started yet", of.Namespace, of.Name)
	}
	for _, name := range d.Leases {
		of.Name = name
		d.checkLease(ctx, of, "holds the lease "+name, "its controllers do not run")
	}
}

// checkLease reports the holder of a lease. Leads says what the holder does, idle what is not
// done without one. found is false if there is no lease. The times in a lease are by the
// holder's clock.
func (d *doctor) checkLease(ctx context.Context, of authority.Authority, leads, idle string) (found bool) {
	const check = "leader"
	name := of.Namespace + "/" + of.Name
	lease, err := of.Lease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return false
	case err != nil:
		d.Unread(check, "get Lease "+name, err)
		return true
	}
	silent := time.Now().Add(d.clock.skew).Sub(lease.Renewed)
	switch {
	case lease.Holder == "":
		d.Fix(check, "see the logs of the replicas: one of them should take it", "no replica holds the lease %s: %s", name, idle)
	case lease.Duration > maxLease:
		d.Fix(check, "delete the lease, and see who may write leases in "+of.Namespace, "%s has taken the lease %s for %.0f s: %s until it has been silent for a while",
			lease.Holder, name, lease.Duration.Seconds(), idle)
	case silent > lease.Duration:
		d.Fix(check, "see whether it runs, and whether it reaches the API server; the others take over if they can", "%s %s, and has been silent for %s", lease.Holder, leads, silent.Round(time.Second))
	case silent < -tolerance:
		d.Fix(check, "synchronize clocks", "the clock of %s, which %s, is ahead by %s", lease.Holder, leads, (-silent).Round(time.Second))
	default:
		d.OK(check, "%s %s", lease.Holder, leads)
	}
	return true
}
