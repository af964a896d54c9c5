// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// hoarderAddress is that of the pod that callers are in who hold what they can get.
const hoarderAddress = "10.244.250.1"

// hoardersCome is the time between the first connections of two of them: 4,000 a second.
const hoardersCome = 250 * time.Microsecond

// livenessLasts is how many probes, one a second, may fail in a row: the kubelet asks every 10 s,
// and kills after three failures, which takes it longer.
const livenessLasts = 10

// hoarding is how long callers hold what they can get.
func (c *cluster) hoarding() time.Duration {
	if c.settings.short {
		return 4 * time.Second
	}
	return 30 * time.Second
}

// deployLimited is deploy of one replica with the memory that the container has.
func (c *cluster) deployLimited(ctx context.Context) ([]*replica, error) {
	r, err := c.startLimited("--private-paths=Never") // who knows them not gets no further than to a 404
	if err != nil {
		return nil, err
	}
	live := []*replica{r}
	if err := r.awaitReady(ctx); err != nil {
		return live, err
	}
	if err := c.addEndpoint(ctx, r); err != nil {
		return live, err
	}
	return live, c.awaitInjection(ctx)
}

// slowBodies announces bodies of 8 MiB, sends most of each, and then nothing. Whenever one
// is cut, another takes its place.
func slowBodies(ctx context.Context, c *cluster, _ int, out *result) error {
	const callers, announced, sent = 16, 8 << 20, 5 << 20
	live, err := c.deployLimited(ctx)
	if err != nil {
		return err
	}
	stopWatching := c.watchReadiness(ctx, live)
	defer stopWatching()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	a := attack{Callers: callers, Every: hoardersCome, Pause: 500 * time.Millisecond, Length: c.hoarding(), Holdings: []holding{{
		From: hoarderAddress, Address: fmt.Sprintf("%s:%d", live[0].address, webhookPort), Secure: true,
		Begin: append(announcing(announced), make([]byte, sent)...),
	}}}
	came, err := a.hoard(ctx)
	if err != nil {
		return err
	}
	out.requireNothingLost(s.stop(ctx, out))
	live[0].checkMemory(out, memoryLimit)
	out.notef("%d bodies were cut", came.Closed)
	stopWatching()
	return c.withdraw(ctx, live)
}

// connections opens more of them to both ports than fit into memory: first to that of
// metrics, then to that of webhooks, with bodies that trickle.
func connections(ctx context.Context, c *cluster, _ int, out *result) error {
	plain, trickling := 12_000, 4_090
	if c.settings.short {
		plain, trickling = 2_000, 500
	}
	live, err := c.deployLimited(ctx)
	if err != nil {
		return err
	}
	stopWatching := c.watchReadiness(ctx, live)
	defer stopWatching()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	failed, inARow, most := 0, 0, 0 // probes
	probing, stopProbing := context.WithCancel(ctx)
	defer stopProbing()
	var prober sync.WaitGroup
	prober.Go(func() { // as the kubelet's liveness probe
		for lab.Sleep(probing, time.Second) {
			asking, cancel := context.WithTimeout(probing, time.Second)
			_, err := lab.Get(asking, lab.Probes, fmt.Sprintf("http://%s:%d/livez", live[0].address, metricsPort))
			cancel()
			switch {
			case err == nil:
				inARow = 0
			case probing.Err() == nil:
				failed++
				inARow++
				most = max(most, inARow)
			}
		}
	})
	metrics := fmt.Sprintf("%s:%d", live[0].address, metricsPort)
	for _, a := range []attack{
		{Callers: plain, Holdings: []holding{
			{Address: metrics},
			{Address: metrics, Begin: []byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")},
			{Address: metrics, Begin: []byte("GET /metrics HTTP/1.1\r\n")},
			{Address: metrics, Begin: []byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")},
		}},
		{Callers: trickling, Holdings: []holding{{
			Address: fmt.Sprintf("%s:%d", live[0].address, webhookPort), Secure: true,
			Begin: announcing(8_000_000), Trickle: `{"kind":"AdmissionReview"`,
		}}},
	} {
		a.Every, a.Pause, a.Length = hoardersCome, 5*time.Second, c.hoarding()
		for i := range a.Holdings {
			a.Holdings[i].From = hoarderAddress
		}
		came, err := a.hoard(ctx)
		if err != nil {
			return err
		}
		out.notef("%s: %d callers, the server closed %d connections", a.Holdings[0].Address, a.Callers, came.Closed)
	}
	stopProbing()
	prober.Wait()
	out.requireNothingLost(s.stop(ctx, out))
	live[0].checkMemory(out, memoryLimit)
	out.notef("%d probes failed, %d in a row", failed, most)
	if most >= livenessLasts {
		out.problemf("%d probes failed in a row: the kubelet would have killed the server", most)
	}
	stopWatching()
	return c.withdraw(ctx, live)
}
