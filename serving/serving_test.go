// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if target := os.Getenv(crowdVariable); target != "" { // started by startCrowd
		runCrowd(target)
		return
	}
	// After an early answer net/http keeps the connection half open for 500 ms,
	// so that the caller can read it; Close does not cut that short.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// certificate is self-signed for 127.0.0.1, valid around the time of the call.
func certificate(t testing.TB) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// testOptions returns the defaults, on free loopback ports, with a discarded log.
func testOptions(t testing.TB) (Options, *x509.CertPool) {
	t.Helper()
	served, pool := certificate(t)
	options := DefaultOptions()
	options.BindAddress, options.SecurePort, options.MetricsBindAddress = "127.0.0.1", 0, "127.0.0.1:0"
	options.DrainMin, options.DrainTimeout = 0, time.Minute
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return served, nil }
	options.Logger = slog.New(slog.DiscardHandler)
	return options, pool
}

// harness is a server that runs until the test ends, and a client for it.
type harness struct {
	*Server
	t      testing.TB
	client *http.Client
	agent  string // what requests call their sender
	tls    *tls.Config
	dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// dialled are the connections below TLS for requests written by hand.
	dialled []net.Conn
	// stop ends the context of Run, ended gets what Run returned.
	stop  context.CancelFunc
	ended chan error
}

// start runs a server over loopback, with the options changed by change.
func start(t testing.TB, change func(*Options)) *harness {
	t.Helper()
	options, pool := testOptions(t)
	change(&options)
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &harness{Server: server, t: t, agent: apiServerAgent + "-admission", stop: stop, ended: make(chan error, 1),
		tls: &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}, dialer: new(net.Dialer).DialContext}
	transport := &http.Transport{TLSClientConfig: h.tls.Clone(), ForceAttemptHTTP2: true}
	h.client = &http.Client{Transport: transport}
	go func() { h.ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.close()
		stop()
		if err := <-h.ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return h
}

func (h *harness) url(path string) string { return "https://" + h.Addr().String() + path }

// reply is a response that has been read.
type reply struct {
	*http.Response
	text string
}

func (h *harness) post(path, body string) reply {
	h.t.Helper()
	return h.do(http.MethodPost, path, strings.NewReader(body))
}

func (h *harness) get(path string) reply {
	h.t.Helper()
	return h.do(http.MethodGet, path, nil)
}

func (h *harness) do(method, path string, body io.Reader) reply {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), method, h.url(path), body)
	if err != nil {
		h.t.Fatal(err)
	}
	request.Header.Set("User-Agent", h.agent)
	response, err := h.client.Do(request)
	if err != nil {
		h.t.Fatal(err)
	}
	return readReply(h.t, response)
}

func readReply(t testing.TB, response *http.Response) reply {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return reply{Response: response, text: string(text)}
}

// expect checks status and, as a substring, text.
func (r reply) expect(t testing.TB, status int, text string) {
	t.Helper()
	if r.StatusCode != status || !strings.Contains(r.text, text) {
		t.Errorf("got %d %q, want %d with %q", r.StatusCode, r.text, status, text)
	}
}

// dial opens a TLS connection for requests written by hand.
func (h *harness) dial() *rawConn {
	h.t.Helper()
	plain, err := h.dialer(h.t.Context(), "tcp", h.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = plain.Close() })
	conn := tls.Client(plain, h.tls)
	if err := conn.HandshakeContext(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.dialled = append(h.dialled, plain)
	return &rawConn{Conn: conn, t: h.t, reader: bufio.NewReader(conn)}
}

type rawConn struct {
	*tls.Conn
	t      testing.TB
	reader *bufio.Reader
}

func (c *rawConn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawConn) reply() reply {
	c.t.Helper()
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return readReply(c.t, response)
}

// awaitClosed returns when the server has closed the connection.
func (c *rawConn) awaitClosed() {
	c.t.Helper()
	if _, err := c.reader.ReadByte(); err == nil {
		c.t.Error("got data, want the connection closed")
	}
}

// echo answers with the body it was sent.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(w, r.Body)
})

// held is a handler that reports when it is called and answers when released.
type held struct {
	called chan *http.Request
	let    chan struct{}
	once   sync.Once
}

func newHeld() *held {
	return &held{called: make(chan *http.Request, 100), let: make(chan struct{})}
}

func (h *held) release() { h.once.Do(func() { close(h.let) }) }

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.called <- r
	<-h.let
	_, _ = io.WriteString(w, "done")
}
