// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowdVariable has the address that a process of this test attacks.
const crowdVariable = "SALLYPORT_TEST_CROWD"

const (
	crowdAddress = "127.0.0.66"
	crowdCallers = 3000
	crowdPause   = 100 * time.Millisecond // between two connections of a caller
)

// runCrowd holds as many connections as it gets from one address until its standard input ends, each in
// one of five ways, and opens another for each that is closed. It prints their number now and then.
func runCrowd(target string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var opened atomic.Int64
	var group sync.WaitGroup
	for i := range crowdCallers {
		group.Go(func() {
			for ctx.Err() == nil {
				holdOne(ctx, target, i%5, &opened)
				select {
				case <-ctx.Done():
				case <-time.After(crowdPause):
				}
			}
		})
	}
	for ctx.Err() == nil {
		_, _ = fmt.Println(opened.Load())
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	group.Wait()
}

func holdOne(ctx context.Context, target string, way int, opened *atomic.Int64) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(crowdAddress)}, Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	opened.Add(1)
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if way > 0 { // otherwise it says nothing at all
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // an attacker
		if err := secure.HandshakeContext(ctx); err != nil {
			return
		}
		conn = secure
	}
	trickle := ""
	switch way {
	case 2: // a header that never ends
		_, _ = io.WriteString(conn, "POST /echo HTTP/1.1\r\nHost: x\r\n")
		trickle = "X-Header: value\r\n"
	case 3: // a body that never ends
		_, _ = io.WriteString(conn, "POST /echo?timeout=10s HTTP/1.1\r\nHost: x\r\nAuthorization: bad\r\nContent-Length: 100000\r\n\r\n")
		trickle = `{"kind":"AdmissionReview"`
	case 4: // a call with the name of an API server
		_, _ = io.WriteString(conn, "POST /echo?timeout=10s HTTP/1.1\r\nHost: x\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: 5\r\n\r\nhello")
	}
	go func() {
		for ctx.Err() == nil && trickle != "" {
			if _, err := io.WriteString(conn, trickle); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	_, _ = io.Copy(io.Discard, conn) // until it is closed
}

// startCrowd attacks a server with a process of its own, as other machines would, until stop is called.
func startCrowd(t *testing.T, h *harness) (stop func()) {
	t.Helper()
	crowd := exec.CommandContext(t.Context(), os.Args[0])
	crowd.Env = append(os.Environ(), crowdVariable+"="+h.Addr().String())
	crowd.Stderr = os.Stderr
	in, errIn := crowd.StdinPipe()
	out, errOut := crowd.StdoutPipe()
	if err := errors.Join(errIn, errOut, crowd.Start()); err != nil {
		t.Fatal(err)
	}
	lines, opened := bufio.NewScanner(out), 0
	for opened < crowdCallers && lines.Scan() {
		_, _ = fmt.Sscan(lines.Text(), &opened)
	}
	stop = sync.OnceFunc(func() {
		_ = in.Close()
		for lines.Scan() {
			_, _ = fmt.Sscan(lines.Text(), &opened)
		}
		_ = crowd.Wait()
		t.Logf("the crowd opened %d connections", opened)
	})
	t.Cleanup(stop)
	return stop
}

// callsOf are those of one client, and how many of them came through.
type callsOf struct {
	address, agent string
	authorization  string
	fresh          bool // each on a new connection
	made           int
	failed         []string
	longest        time.Duration
}

func (c *callsOf) client(h *harness) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.address)}}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: h.tls.Clone(), DialContext: dialer.DialContext, DisableKeepAlives: c.fresh}}
}

func (c *callsOf) run(ctx context.Context, h *harness, client *http.Client) {
	for ctx.Err() == nil {
		c.made++
		began := time.Now()
		if problem := c.call(h, client); problem != "" {
			c.failed = append(c.failed, problem)
		}
		c.longest = max(c.longest, time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *callsOf) call(h *harness, client *http.Client) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url("/echo?timeout=10s"), strings.NewReader("hello"))
	if err != nil {
		return err.Error()
	}
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set("Authorization", c.authorization)
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || string(text) != "hello" {
		return fmt.Sprintf("%d %q, %v", response.StatusCode, text, err)
	}
	return ""
}

// At least 99 of 100 calls come through that are from other addresses or on a connection that has
// carried reviews, even from the address of the crowd.
func TestACrowdFromOneAddressIsNoObstacleToOthers(t *testing.T) {
	for name, authenticates := range map[string]bool{"callers are authenticated": true, "anybody may call": false} {
		t.Run(name, func(t *testing.T) {
			h := start(t, func(o *Options) {
				o.MaxConnections = 300
				o.Routes = []Route{{Path: "/echo", Handler: echo}}
				if authenticates {
					o.Authenticate = func(r *http.Request) error {
						if r.Header.Get("Authorization") != "good" {
							return ErrUnauthenticated
						}
						return nil
					}
				}
			})
			clients := map[string]*callsOf{
				"an API server on its connection":                          {address: "127.0.0.1", agent: "kube-apiserver-admission"},
				"an API server on new connections":                         {address: "127.0.0.1", agent: "kube-apiserver-admission", fresh: true},
				"another caller on new connections":                        {address: "127.0.0.2", agent: "curl", fresh: true},
				"an API server of the crowd's address, on its connection":  {address: crowdAddress, agent: "kube-apiserver-admission"},
				"an API server of the crowd's address, on new connections": {address: crowdAddress, agent: "kube-apiserver-admission", fresh: true},
			}
			ready := map[string]*http.Client{}
			for name, client := range clients {
				client.authorization = "good"
				ready[name] = client.client(h)
				defer ready[name].CloseIdleConnections()
				if problem := client.call(h, ready[name]); problem != "" {
					t.Fatal(problem)
				}
			}
			stop := startCrowd(t, h)
			calling, end := context.WithTimeout(t.Context(), crowdLasts)
			defer end()
			var callers sync.WaitGroup
			for name, client := range clients {
				callers.Go(func() { client.run(calling, h, ready[name]) })
			}
			callers.Wait()
			stop()
			for name, client := range clients {
				t.Logf("%s: %d of %d calls failed, the longest took %s", name, len(client.failed), client.made, client.longest.Round(time.Millisecond))
				if own := client.address == crowdAddress && client.fresh; !own && 100*len(client.failed) > client.made { // its new ones are strangers like the crowd's
					t.Errorf("%s: %d of %d calls failed: %s", name, len(client.failed), client.made, client.failed[0])
				}
			}
		})
	}
}

const crowdLasts = 4 * time.Second
