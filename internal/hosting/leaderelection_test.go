// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestProblemsInLeaderElectionAreNamed(t *testing.T) {
	err := LeaderElectionSettings{Enabled: true, LeaseDuration: time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 3 * time.Second}.Validate()
	for _, want := range []string{"LeaderElection.LeaseDuration 1s", "LeaderElection.RenewDeadline 2s must be longer than 3.6s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in %v", want, err)
		}
	}
	if err := errors.Join(LeaderElectionSettings{Enabled: true}.Validate(), LeaderElectionSettings{LeaseDuration: -1}.Validate()); err != nil {
		t.Errorf("refused: %v", err)
	}
}
