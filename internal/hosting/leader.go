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
)

// LeaderTimes say how leases are kept: how long the others wait for a leader that is
// silent, after how long a leader that cannot renew gives up, and how often each tries.
type LeaderTimes struct{ LeaseDuration, RenewDeadline, RetryPeriod time.Duration }

// A Leader tells whether this replica is the one that leads. Nothing ends when it
// does not any more.
type Leader struct {
	settings leaderelection.LeaderElectionConfig
	log      *slog.Logger

	mu      sync.Mutex
	leading bool
	changed chan struct{}
}

// NewLeader is a candidate for the lease of that name. The times were validated.
func NewLeader(client coordinationv1.LeasesGetter, namespace, name string, times LeaderTimes, log *slog.Logger) (*Leader, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	l := &Leader{log: log.With("lease", namespace+"/"+name), changed: make(chan struct{})}
	l.settings = leaderelection.LeaderElectionConfig{
		Lock: boundedLock{&resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:    client,
			// Not the host alone: two processes of one host are two.
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		}, int(2 * times.LeaseDuration / time.Second)},
		LeaseDuration: times.LeaseDuration, RenewDeadline: times.RenewDeadline, RetryPeriod: times.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { l.set(ctx, true) },
			OnStoppedLeading: func() { l.set(context.Background(), false) },
		},
		// Not ReleaseOnCancel: a leader that cannot renew would try to give up what it cannot
		// write, and believe for as long that it leads, when another one does. See release.
		Name: name,
	}
	if _, err := leaderelection.NewLeaderElector(l.settings); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	return l, nil
}

// boundedLock believes no lease to last longer than some seconds after it was renewed: whoever
// may write it, by right or not, could otherwise have it once and forever, and nobody would
// lead. Twice what this replica asks for leaves room for replicas that are told another time.
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

// Lease is the lease that it stands for, "namespace/name".
func (l *Leader) Lease() string { return l.settings.Lock.Describe() }

// Leading tells whether this replica leads now. A nil leader always does.
func (l *Leader) Leading() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

// Changed returns a channel that is closed when Leading changes next; nil for a nil
// leader.
func (l *Leader) Changed() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// set notes who leads. What started is told by a goroutine of its own, which may come
// after the end: its context has ended then.
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

// Run stands for election until ctx ends, and gives the lease up then. A lease that
// is lost is asked for again.
func (l *Leader) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(Quiet{l.log.Handler()}).V(1)) // it reports every step
	// Before the lease is given up, not after: then another one may lead already.
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

// release gives the lease up, so that others need not wait for its end.
func (l *Leader) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.settings.RenewDeadline)
	defer cancel()
	record, _, err := l.settings.Lock.Get(ctx)
	if err != nil || record.HolderIdentity != l.settings.Lock.Identity() {
		return // it is nobody's, or another's, or runs out
	}
	now := metav1.Now()
	if err := l.settings.Lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	}); err != nil {
		l.log.Info("the lease is not given up, and runs out", slog.Any("error", err))
	}
}
