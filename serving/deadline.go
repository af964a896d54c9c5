// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"strings"
	"time"
)

// timeBudget returns how long a request may take, from the arrival of its
// header, given the raw query of its URL.
//
// The API server sends ?timeout= as a Go duration: what is left of its own
// deadline, rounded up to whole seconds. A missing or unreadable value counts as
// 30 s, as does a larger one. Of this a quarter is kept back, at most 500 ms: an
// answer that comes in time can still move the call to another replica, a late
// one cannot. Where the rounding has hidden more than the margin, the answer is
// late all the same; that happens only in the last second of the user's own
// request.
func timeBudget(rawQuery string) time.Duration {
	timeout := longestTimeout
	for parameter := range strings.SplitSeq(rawQuery, "&") {
		value, found := strings.CutPrefix(parameter, "timeout=")
		if !found {
			continue
		}
		if given, err := time.ParseDuration(value); err == nil && given > 0 {
			timeout = min(given, longestTimeout)
		}
		break
	}
	return timeout - min(timeout/4, 500*time.Millisecond)
}
