// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// slowloris holds sockets to the replicas that send nothing, or one byte at a
// time, each in one of four ways, and opens another for each that is closed.
func slowloris(ctx context.Context, c *cluster, _ int, out *result) error {
	sockets, length := 2000, time.Minute
	if c.settings.short {
		sockets, length = 500, 12*time.Second
	}
	live, err := c.deploy(ctx, 2, "--private-paths=Never") // the attacker knows the path
	if err != nil {
		return err
	}
	stopWatching := c.watchReadiness(ctx, live)
	defer stopWatching()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	a := attack{Callers: sockets, Every: 2 * time.Millisecond, Pause: 100 * time.Millisecond, Length: length}
	for _, r := range live {
		address := fmt.Sprintf("%s:%d", r.address, webhookPort)
		a.Holdings = append(a.Holdings,
			holding{Address: address},               // says nothing at all
			holding{Address: address, Secure: true}, // TLS, and no request
			holding{Address: address, Secure: true, // a header that never ends
				Begin: []byte("POST /apply-poddefault HTTP/1.1\r\nHost: x\r\n"), Trickle: "X-Header: value\r\n"},
			holding{Address: address, Secure: true, // a body that never ends
				Begin: announcing(100_000), Trickle: `{"kind":"AdmissionReview"`})
	}
	came, err := a.hoard(ctx)
	if err != nil {
		return err
	}
	out.requireNothingLost(s.stop(ctx, out))
	if came.Most < int64(sockets)*9/10 {
		out.problemf("only %d of %d sockets were open at one time", came.Most, sockets)
	}
	out.notef("%d sockets, up to %d open at one time; the servers closed %d in %s", sockets, came.Most, came.Closed, length)
	stopWatching()
	return c.withdraw(ctx, live)
}

// announcing is the header of a request with a body of that many bytes.
func announcing(bytes int) []byte {
	return fmt.Appendf(nil, "POST /apply-poddefault?timeout=10s HTTP/1.1\r\nHost: x\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", bytes)
}
