// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/internal/registration"
)

// A Leader reports whether this replica leads. The process continues when it loses the lease.
type Leader struct {
	settings leaderelection.LeaderElectionConfig
	log      *slog.Logger

	mu      sync.Mutex
	leading bool
	changed chan struct{}
}

// NewLeader returns a candidate for the lease of that name. The times must be valid.
func NewLeader(client coordinationv1.LeasesGetter, namespace, name string, times registration.LeaderElectionSettings, log *slog.Logger) (*Leader, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	l := &Leader{log: log.With("lease", namespace+"/"+name), changed: make(chan struct{})}
	l.settings = leaderelection.LeaderElectionConfig{
		Lock: boundedLock{&resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:    client,
			// The host name is not enough: two processes may share a host.
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		}, int(2 * times.LeaseDuration / time.Second)},
		LeaseDuration: times.LeaseDuration, RenewDeadline: times.RenewDeadline, RetryPeriod: times.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { l.set(ctx, true) },
			OnStoppedLeading: func() { l.set(context.Background(), false) },
		},
		// Not ReleaseOnCancel: a leader that cannot renew would try to release a lease that it
		// cannot write, and meanwhile believe that it leads while another one does. See
		// release.
		Name: name,
	}
	if _, err := leaderelection.NewLeaderElector(l.settings); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	return l, nil
}

// boundedLock ignores a lease duration beyond a limit. Otherwise any client that may write the
// lease could hold it forever, and no replica would lead. The limit is twice this replica's own
// duration, which leaves room for replicas with another setting.
type boundedLock struct {
	resourcelock.Interface
	longest int
}

// Get implements [resourcelock.Interface].
func (l boundedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		record.LeaseDurationSeconds = min(record.LeaseDurationSeconds, l.longest)
	}
	return record, raw, err
}

// Lease returns the lease, "namespace/name".
func (l *Leader) Lease() string { return l.settings.Lock.Describe() }

// Leading reports whether this replica leads now. A nil leader always does.
func (l *Leader) Leading() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

// Changed returns a channel that is closed when the result of Leading changes. It is nil for a
// nil leader.
func (l *Leader) Changed() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// set records who leads. client-go reports the start in its own goroutine, possibly after the
// end; ctx is done in that case.
func (l *Leader) set(ctx context.Context, leading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil || leading == l.leading {
		return
	}
	l.log.Info("leader election", slog.Bool("leading", leading))
	l.leading = leading
	close(l.changed)
	l.changed = make(chan struct{})
}

// Run takes part in the election until ctx ends, and then releases the lease. It competes again
// after losing the lease.
func (l *Leader) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(Quiet{l.log.Handler()}).V(1)) // client-go logs every step
	// Stop leading before the release: after it, another replica may lead.
	defer context.AfterFunc(ctx, func() { l.set(context.Background(), false) })()
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(l.settings)
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
		if ctx.Err() != nil && elector.IsLeader() {
			l.release(context.WithoutCancel(ctx))
		}
	}
	return nil
}

// release releases the lease, so that other candidates need not wait for it to expire.
func (l *Leader) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.settings.RenewDeadline)
	defer cancel()
	record, _, err := l.settings.Lock.Get(ctx)
	if err != nil || record.HolderIdentity != l.settings.Lock.Identity() {
		return // it has no holder, another holder, or expires
	}
	now := metav1.Now()
	if err := l.settings.Lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	}); err != nil {
		l.log.Info("failed to release the lease; it will expire", slog.Any("error", err))
	}
}
