// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestQuietLeavesOutWhatIsExpectedOnly(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, tc := range map[string]struct {
		message string
		err     error
		logged  bool
	}{
		"another replica made the lease":  {"Error initially creating lease lock", apierrors.NewAlreadyExists(leases, "a"), false},
		"a lease that may not be made":    {"Error initially creating lease lock", apierrors.NewForbidden(leases, "a", errors.New("no")), true},
		"the end of a manager":            {"error received after stop sequence was engaged", errors.New("leader election lost"), false},
		"an error at the end":             {"error received after stop sequence was engaged", errors.New("disk full"), true},
		"the same error in another place": {"failed", errors.New("leader election lost"), true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := logr.FromSlogHandler(Quiet{slog.NewTextHandler(&out, nil)}).WithName("manager").WithValues("replica", 1)
			log.Error(tc.err, tc.message, "lock", "a")
			if (out.Len() > 0) != tc.logged {
				t.Errorf("logged %q", out.String())
			}
		})
	}
}
