// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/leaderelection"
)

// LeaderElectionSettings configure the election of the replica that runs the controllers
// and, for an authority in a Secret, writes webhook configurations and rotates the
// authority. All replicas serve.
type LeaderElectionSettings struct {
	// Enabled elects one replica. Otherwise every replica does it.
	Enabled bool
	// Namespace of the lease of controllers; empty means that of the pod. The other lease
	// has the name and namespace of the Secret.
	Namespace string
	// LeaseDuration is how long other replicas wait before they take over from a leader
	// that stopped renewing, RenewDeadline how long a leader retries renewing before it
	// gives up, RetryPeriod the time between attempts. Defaults 15 s, 10 s, 2 s, as for
	// Kubernetes' components.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultLeaderElection has the defaults of Kubernetes' components.
func DefaultLeaderElection() LeaderElectionSettings {
	return LeaderElectionSettings{Enabled: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// AddElectFlag adds the flag that determines the permissions of the server.
func (s *LeaderElectionSettings) AddElectFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.Enabled, "leader-elect", s.Enabled,
		"make one replica at a time run the controllers, write the webhook configurations and rotate the authority; otherwise every replica does")
}

// AddNamespaceFlag adds the flag for the lease of controllers.
func (s *LeaderElectionSettings) AddNamespaceFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Namespace, "leader-election-namespace", s.Namespace,
		"`namespace` of the lease of the controllers; defaults to that of the pod")
}

// AddFlags binds the settings to flags, apart from the namespace. Their current values are
// the defaults.
func (s *LeaderElectionSettings) AddFlags(cmd *cobra.Command) {
	s.AddElectFlag(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&s.LeaseDuration, "leader-elect-lease-duration", s.LeaseDuration, "`time` that other replicas wait before they take over from a leader that stopped renewing its lease")
	flags.DurationVar(&s.RenewDeadline, "leader-elect-renew-deadline", s.RenewDeadline, "`time` that a leader retries renewing its lease before it gives up leadership")
	flags.DurationVar(&s.RetryPeriod, "leader-elect-retry-period", s.RetryPeriod, "`time` between two attempts to acquire or renew the lease")
}

// complete fills in defaults.
func (s *LeaderElectionSettings) complete() {
	usual := DefaultLeaderElection()
	s.LeaseDuration = cmp.Or(s.LeaseDuration, usual.LeaseDuration)
	s.RenewDeadline = cmp.Or(s.RenewDeadline, usual.RenewDeadline)
	s.RetryPeriod = cmp.Or(s.RetryPeriod, usual.RetryPeriod)
}

// Times returns the times of the leases, with defaults.
func (s LeaderElectionSettings) Times() LeaderTimes {
	s.complete()
	return LeaderTimes{LeaseDuration: s.LeaseDuration, RenewDeadline: s.RenewDeadline, RetryPeriod: s.RetryPeriod}
}

// Validate reports every problem in the flags of AddFlags.
func (s LeaderElectionSettings) Validate() error {
	s.complete()
	if !s.Enabled {
		return nil
	}
	var errs []error
	if s.LeaseDuration <= s.RenewDeadline {
		errs = append(errs, problemf("%s %s must be longer than %s %s", setting("leader-elect-lease-duration"), s.LeaseDuration, setting("leader-elect-renew-deadline"), s.RenewDeadline))
	}
	if longest := time.Duration(leaderelection.JitterFactor * float64(s.RetryPeriod)); s.RenewDeadline <= longest {
		errs = append(errs, problemf("%s %s must be longer than %s, which is %s and a fifth", setting("leader-elect-renew-deadline"), s.RenewDeadline, longest, setting("leader-elect-retry-period")))
	}
	if s.RetryPeriod <= 0 {
		errs = append(errs, problemf("%s %s must be positive", setting("leader-elect-retry-period"), s.RetryPeriod))
	}
	return errors.Join(errs...)
}
