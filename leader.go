// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// LeaderElectionSettings say which of several replicas does what only one shall do:
// run the controllers and, for an authority in a Secret, write webhook configurations
// and replace the authority. All of them serve.
type LeaderElectionSettings struct {
	// Enabled: one of them. Otherwise each.
	Enabled bool
	// Namespace of the lease of controllers; empty means that of the pod. The other
	// lease is named like the Secret, and beside it.
	Namespace string
	// LeaseDuration is how long the others wait for a leader that is silent,
	// RenewDeadline after how long a leader that cannot renew gives up, RetryPeriod how
	// often each tries. Defaults 15 s, 10 s, 2 s: those of Kubernetes' components.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

func defaultLeaderElection() LeaderElectionSettings {
	return LeaderElectionSettings{Enabled: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// AddElectFlag adds the flag on which the rights of the server depend.
func (s *LeaderElectionSettings) AddElectFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.Enabled, "leader-elect", s.Enabled,
		"let one replica at a time run the controllers, write webhook configurations and replace the authority in the Secret; otherwise each does")
}

// AddNamespaceFlag adds the flag for the lease of controllers.
func (s *LeaderElectionSettings) AddNamespaceFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Namespace, "leader-election-namespace", s.Namespace,
		"`namespace` of the lease that tells who runs the controllers; empty for that of the pod")
}

// AddFlags binds the settings to flags, apart from the namespace. The values they have
// now are the defaults.
func (s *LeaderElectionSettings) AddFlags(cmd *cobra.Command) {
	s.AddElectFlag(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&s.LeaseDuration, "leader-elect-lease-duration", s.LeaseDuration, "`time` that other replicas wait for a leader that is silent")
	flags.DurationVar(&s.RenewDeadline, "leader-elect-renew-deadline", s.RenewDeadline, "`time` after which a leader that cannot renew its lease gives up")
	flags.DurationVar(&s.RetryPeriod, "leader-elect-retry-period", s.RetryPeriod, "`time` between two attempts to get or to renew the lease")
}

// complete fills in what is not said.
func (s *LeaderElectionSettings) complete() {
	usual := defaultLeaderElection()
	s.LeaseDuration = cmp.Or(s.LeaseDuration, usual.LeaseDuration)
	s.RenewDeadline = cmp.Or(s.RenewDeadline, usual.RenewDeadline)
	s.RetryPeriod = cmp.Or(s.RetryPeriod, usual.RetryPeriod)
}

// Validate reports every mistake in the flags of AddFlags.
func (s LeaderElectionSettings) Validate() error {
	s.complete()
	if !s.Enabled {
		return nil
	}
	var errs []error
	if s.LeaseDuration <= s.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s must be longer than --leader-elect-renew-deadline %s", s.LeaseDuration, s.RenewDeadline))
	}
	if longest := time.Duration(leaderelection.JitterFactor * float64(s.RetryPeriod)); s.RenewDeadline <= longest {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline %s must be longer than %s, which is --leader-elect-retry-period and a fifth", s.RenewDeadline, longest))
	}
	if s.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period %s must be positive", s.RetryPeriod))
	}
	return errors.Join(errs...)
}

// A leader tells whether this replica is the one that leads. Nothing ends when it
// does not any more.
type leader struct {
	settings leaderelection.LeaderElectionConfig
	log      *slog.Logger

	mu      sync.Mutex
	leading bool
	changed chan struct{}
}

// newLeader is a candidate for the lease of that name. The settings were validated.
func newLeader(client coordinationv1.LeasesGetter, namespace, name string, s LeaderElectionSettings, log *slog.Logger) (*leader, error) {
	s.complete()
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	l := &leader{log: log.With("lease", namespace+"/"+name), changed: make(chan struct{})}
	l.settings = leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:    client,
			// Not the host alone: two processes of one host are two.
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: s.LeaseDuration, RenewDeadline: s.RenewDeadline, RetryPeriod: s.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { l.set(ctx, true) },
			OnStoppedLeading: func() { l.set(context.Background(), false) },
		},
		ReleaseOnCancel: true,
		Name:            name,
	}
	if _, err := leaderelection.NewLeaderElector(l.settings); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	return l, nil
}

// Leading tells whether this replica leads now. A nil leader always does.
func (l *leader) Leading() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

// Changed returns a channel that is closed when Leading changes next; nil for a nil
// leader.
func (l *leader) Changed() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// set notes who leads. What started is told by a goroutine of its own, which may come
// after the end: its context has ended then.
func (l *leader) set(ctx context.Context, leading bool) {
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
func (l *leader) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(l.log.Handler()).V(1)) // it reports every step
	// Before the lease is given up, not after: then another one may lead already.
	defer context.AfterFunc(ctx, func() { l.set(context.Background(), false) })()
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(l.settings)
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	return nil
}
