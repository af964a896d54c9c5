// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/leaderelection"
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

// DefaultLeaderElection has the times of Kubernetes' components.
func DefaultLeaderElection() LeaderElectionSettings {
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
	usual := DefaultLeaderElection()
	s.LeaseDuration = cmp.Or(s.LeaseDuration, usual.LeaseDuration)
	s.RenewDeadline = cmp.Or(s.RenewDeadline, usual.RenewDeadline)
	s.RetryPeriod = cmp.Or(s.RetryPeriod, usual.RetryPeriod)
}

// Times are those of the leases, complete.
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
