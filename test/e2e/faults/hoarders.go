// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// hoarderAddress is that of the pod that callers are in who hold what they can get.
const hoarderAddress = "10.244.250.1"

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
	r, err := c.startLimited("--private-paths=false") // who knows them not gets no further than to a 404
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
	body := make([]byte, sent)
	begin := fmt.Sprintf("POST /apply-poddefault?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", announced)
	h := c.hoard(ctx, callers, 500*time.Millisecond, func(int) holding {
		return holding{from: hoarderAddress, address: fmt.Sprintf("%s:%d", live[0].address, webhookPort), secure: true, begin: append([]byte(begin), body...)}
	})
	lab.Sleep(ctx, c.hoarding())
	h.stop()
	out.requireNothingLost(s.stop(ctx, out))
	live[0].checkMemory(out, memoryLimit)
	out.notef("%d bodies were cut", h.closed.Load())
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
	if err := raiseFileLimit(uint64(plain) + 4096); err != nil {
		return err
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
	for _, port := range []int{metricsPort, webhookPort} {
		callers := plain
		if port == webhookPort {
			callers = trickling
		}
		h := c.hoard(ctx, callers, 5*time.Second, func(i int) holding {
			if port == webhookPort {
				return holding{from: hoarderAddress, address: fmt.Sprintf("%s:%d", live[0].address, port), secure: true, trickle: `{"kind":"AdmissionReview"`,
					begin: []byte("POST /apply-poddefault?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n")}
			}
			says := []string{"", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics HTTP/1.1\r\n", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}[i%4]
			return holding{from: hoarderAddress, address: fmt.Sprintf("%s:%d", live[0].address, port), begin: []byte(says)}
		})
		lab.Sleep(ctx, c.hoarding())
		h.stop()
		out.notef("port %d: %d callers, the server closed %d connections", port, callers, h.closed.Load())
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

// A hoarder holds connections until it is stopped.
type hoarder struct {
	cancel context.CancelFunc
	group  sync.WaitGroup
	closed atomic.Int64 // by the other side
}

// hoard has so many callers hold a connection each; who loses one opens another after a pause.
func (c *cluster) hoard(ctx context.Context, callers int, pause time.Duration, of func(int) holding) *hoarder {
	h := &hoarder{}
	ctx, h.cancel = context.WithCancel(ctx)
	for i := range callers {
		h.group.Go(func() {
			lab.Sleep(ctx, time.Duration(i)*250*time.Microsecond) // 4,000 a second
			for ctx.Err() == nil {
				of(i).hold(ctx)
				if ctx.Err() == nil {
					h.closed.Add(1)
				}
				lab.Sleep(ctx, pause)
			}
		})
	}
	return h
}

func (h *hoarder) stop() {
	h.cancel()
	h.group.Wait()
}
