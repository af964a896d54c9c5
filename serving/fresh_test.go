// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFreshConnections(t *testing.T) {
	const request = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	options := DefaultOptions()
	line, split := len("POST /echo HTTP/1.1\r\n"), len(request)-3 // in the body
	for name, test := range map[string]struct {
		wait, pause time.Duration // before the first byte, and in the middle of the body
		split       int
		status      int // 0: closed
	}{
		"a request at once is answered":                            {0, 0, split, http.StatusOK},
		"a connection may wait for its first request as any other": {90 * time.Second, 0, split, http.StatusOK},
		"and its body has the whole time then":                     {90 * time.Second, options.ReadTimeout - time.Second, split, http.StatusOK},
		"but no more":                                              {90 * time.Second, options.ReadTimeout + time.Second, split, http.StatusRequestTimeout},
		"its header has the time that headers have":                {90 * time.Second, options.ReadHeaderTimeout - time.Second, line, http.StatusOK},
		"and no more than that":                                    {90 * time.Second, options.ReadHeaderTimeout + time.Second, line, 0},
		"a connection that never says anything is closed":          {options.IdleTimeout + time.Second, 0, split, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(o *Options) { o.MinBodyRate = 0 }, func(t *testing.T, h *harness) {
				raw, err := h.dialer(t.Context(), "tcp", "")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = raw.Close() }()
				config := h.tls.Clone()
				config.ServerName = "127.0.0.1"
				conn := tls.Client(raw, config)
				if err := conn.HandshakeContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				answer := make(chan int, 1)
				go func() {
					response, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil {
						answer <- 0
						return
					}
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					answer <- response.StatusCode
				}()
				time.Sleep(test.wait)
				// The server does not read what it has given up.
				_, _ = io.Copy(conn, strings.NewReader(request[:test.split]))
				time.Sleep(test.pause)
				_, _ = io.Copy(conn, strings.NewReader(request[test.split:]))
				if got := <-answer; got != test.status {
					t.Errorf("answered with %d, want %d", got, test.status)
				}
			})
		})
	}
}

// holdingConn sends its first write and holds back the others until released.
type holdingConn struct {
	net.Conn
	writes int
	held   []byte
	free   bool
}

func (c *holdingConn) Write(p []byte) (int, error) {
	c.writes++
	if c.writes > 1 && !c.free {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	if _, err := c.Conn.Write(append(c.held, p...)); err != nil {
		return 0, err
	}
	c.held = nil
	return len(p), nil
}

// The end of the handshake and the beginning of a header, in one write.
func TestHeaderThatComesWithTheEndOfTheHandshakeHasNoMoreTime(t *testing.T) {
	bubble(t, func(*Options) {}, func(t *testing.T, h *harness) {
		raw, err := h.dialer(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		held := &holdingConn{Conn: raw}
		config := h.tls.Clone()
		config.ServerName, config.MinVersion = "127.0.0.1", tls.VersionTLS13
		conn := tls.Client(held, config)
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		held.free = true
		began := time.Now() // the clock is the bubble's
		if _, err := io.WriteString(conn, "POST /echo HTTP/1.1\r\nHost:"); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, conn); n > 0 {
			t.Errorf("%d bytes came: %v", n, err)
		}
		if waited, limit := time.Since(began), DefaultOptions().ReadHeaderTimeout; waited > limit {
			t.Errorf("closed after %s, want %s", waited, limit)
		}
	})
}
