// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"strings"
	"time"
)

// timeBudget returns how long a request may take, from the arrival of its
// header, given the raw query of its URL.
//
// The API server sends ?timeout= as a Go duration: the rest of its own deadline, rounded up
// to whole seconds. A missing, invalid or larger value counts as 30 s. A quarter of it, at
// most 500 ms, is reserved as a margin: a response in time can still make the API server
// retry on another replica, a late one cannot. If rounding hides more than the margin the
// response is late anyway, but only in the last second of the user's request.
func timeBudget(rawQuery string) time.Duration {
	timeout := maxTimeout
	for parameter := range strings.SplitSeq(rawQuery, "&") {
		value, found := strings.CutPrefix(parameter, "timeout=")
		if !found {
			continue
		}
		if given, err := time.ParseDuration(value); err == nil && given > 0 {
			timeout = min(given, maxTimeout)
		}
		break
	}
	return timeout - min(timeout/4, 500*time.Millisecond)
}
