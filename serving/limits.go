// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"runtime"
	"runtime/debug"
)

const (
	// connectionBytes is the memory of a connection, whatever its caller does: a goroutine,
	// buffers of TLS and HTTP, and the first buffer of a body.
	connectionBytes = 64 << 10

	leastConnections, maxConnections               = 64, 4096
	leastMetricsConnections, maxMetricsConnections = 16, 256
	maxBytesInFlight                               = 64 << 20

	// ReviewBytes is the memory that a review may need besides its body: the decoded
	// objects, the patch and the response, of 3 MiB and more each.
	ReviewBytes = 16 << 20
	// ownBytes is the memory of an idle server.
	ownBytes     = 40 << 20
	leastReviews = 2
)

// memoryLimit is the memory limit of the process (GOMEMLIMIT): math.MaxInt64 if it is not
// set.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }

// derive sets the limits that are 0 to their defaults for the given memory limit.
func (s *Settings) derive(memory int64) {
	if s.MaxConnections == 0 {
		s.MaxConnections = int32(min(max(memory/4/connectionBytes, leastConnections), maxConnections))
	}
	if s.MaxMetricsConnections == 0 {
		s.MaxMetricsConnections = min(max(s.MaxConnections/16, leastMetricsConnections), maxMetricsConnections)
	}
	if s.MaxBytesInFlight == 0 {
		s.MaxBytesInFlight = max(min(memory/8, maxBytesInFlight), s.MaxBodyBytes+s.MaxBodyBytes/2*3)
	}
	if s.MaxConcurrentReviews == 0 {
		// The rest, without connections and bodies.
		room := (memory/8*5 - ownBytes) / ReviewBytes
		s.MaxConcurrentReviews = int32(min(max(room, leastReviews), int64(4*runtime.GOMAXPROCS(0))))
	}
	if s.MaxWaitingReviews == 0 {
		s.MaxWaitingReviews = 128 * s.MaxConcurrentReviews
	}
}
