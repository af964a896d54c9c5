// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/controllerruntime"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/serving"
)

func TestMain(m *testing.M) {
	controllerlog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// certificates writes a certificate for 127.0.0.1 in cert-manager's layout. It returns its
// folder and the roots.
func certificates(t *testing.T) (directory string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	directory, roots = t.TempDir(), x509.NewCertPool()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(directory, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(certificate)
	return directory, roots
}

// running is a running server.
type running struct {
	webhook.Server
	client *http.Client
	url    string
	stop   context.CancelFunc
	done   chan error
}

func start(t *testing.T, server webhook.Server, port int, roots *x509.CertPool) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	r := &running{
		Server: server, client: &http.Client{Transport: transport}, url: fmt.Sprintf("https://127.0.0.1:%d", port),
		stop: cancel, done: make(chan error, 1),
	}
	go func() { r.done <- server.Start(ctx); close(r.done) }()
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
		for range r.done { // closed after the server has stopped
		}
	})
	for server.StartedChecker()(nil) != nil {
		select {
		case err := <-r.done:
			t.Fatalf("the server ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	return r
}

// call sends a request and returns the answer.
func (r *running) call(t *testing.T, method, path, body string) (code int, answer string, response *http.Response) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err = r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all), response
}

func review(t *testing.T) string {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "the-uid", Operation: admissionv1.Create, Name: "n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// welcome returns a webhook that admits everything.
func welcome() *ctrladmission.Webhook {
	return &ctrladmission.Webhook{Handler: ctrladmission.HandlerFunc(func(context.Context, ctrladmission.Request) ctrladmission.Response {
		return ctrladmission.Allowed("welcome")
	})}
}

func options(t *testing.T) (webhook.Options, *x509.CertPool) {
	t.Helper()
	directory, roots := certificates(t)
	return webhook.Options{Host: "127.0.0.1", Port: freeport.For(t), CertDir: directory}, roots
}

// quick returns a server with the shortest drain.
func quick(t *testing.T, with func(*controllerruntime.Options)) (webhook.Server, int, *x509.CertPool) {
	t.Helper()
	given, roots := options(t)
	limits := controllerruntime.ServingOptions()
	limits.DrainMin, limits.DrainTimeout = 0, 0
	o := controllerruntime.Options{Options: given, Serving: &limits, Logger: slog.New(slog.DiscardHandler)}
	if with != nil {
		with(&o)
	}
	server, err := controllerruntime.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return server, given.Port, roots
}

func shown(t *testing.T, metric string) bool {
	t.Helper()
	families, err := controllermetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == metric {
			return true
		}
	}
	return false
}

func TestAServerServesWhatWasRegistered(t *testing.T) {
	server, port, roots := quick(t, nil)
	if server.NeedLeaderElection() {
		t.Error("only the leader would serve")
	}
	server.Register("/mutate", welcome())
	server.Register("/convert", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	if _, pattern := server.WebhookMux().Handler(&http.Request{URL: mustURL(t, "/mutate")}); pattern != "/mutate" {
		t.Errorf("the builder would not see that /mutate is registered, but %q", pattern)
	}
	r := start(t, server, port, roots)

	for _, tc := range []struct {
		name, method, path, body string
		code                     int
		answer                   string
	}{
		{"a review is answered by its webhook", http.MethodPost, "/mutate?timeout=5s", review(t), 200, `"uid":"the-uid","allowed":true`},
		{"a handler of any other kind gets the body", http.MethodPost, "/convert", "hello", 200, "hello"},
		{"a path that nobody registered is unknown", http.MethodPost, "/other", "", 404, ""},
		{"a path below another is unknown", http.MethodPost, "/mutate/x", "", 404, ""},
		{"a handler gets any method", http.MethodGet, "/convert", "", 200, ""},
		{"a body that is too large is refused", http.MethodPost, "/convert", strings.Repeat("x", 9<<20), 413, ""},
		{"the server is alive", http.MethodGet, "/livez", "", 200, "ok"},
		{"the server is ready", http.MethodGet, "/readyz", "", 200, "ok"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, answer, _ := r.call(t, tc.method, tc.path, tc.body)
			if code != tc.code || !strings.Contains(answer, tc.answer) {
				t.Errorf("answers %d %s", code, answer)
			}
		})
	}
	for _, metric := range []string{"sallyport_serving_request_duration_seconds", "sallyport_serving_certificate_expiration_timestamp_seconds", "controller_runtime_webhook_requests_total"} {
		if !shown(t, metric) {
			t.Errorf("the manager does not show %s", metric)
		}
	}
	if err := server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second start: %v", err)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
	if shown(t, "sallyport_serving_connections") {
		t.Error("metrics of a server that has ended are shown")
	}
	if err := server.StartedChecker()(nil); err == nil {
		t.Error("a server that has ended counts as started")
	}
}

func TestACallThatIsAtWorkWhenTheServerEndsIsAnswered(t *testing.T) {
	server, port, roots := quick(t, nil)
	entered, goOn := make(chan struct{}), make(chan struct{})
	server.Register("/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-goOn
		_, _ = io.WriteString(w, "done")
	}))
	r := start(t, server, port, roots)
	go func() {
		<-entered
		r.stop()
		for server.StartedChecker()(nil) == nil { // the endpoints observe it
			time.Sleep(time.Millisecond)
		}
		close(goOn)
	}()
	code, answer, response := r.call(t, http.MethodPost, "/slow?timeout=30s", "{}")
	if code != 200 || answer != "done" {
		t.Errorf("answers %d %s", code, answer)
	}
	if !response.Close {
		t.Error("the client may use the connection again")
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestAWebhookThatIsRegisteredAfterTheStartIsServed(t *testing.T) {
	server, port, roots := quick(t, nil)
	server.Register("/in-time", welcome())
	r := start(t, server, port, roots)
	if code, _, _ := r.call(t, http.MethodPost, "/late", review(t)); code != 404 {
		t.Fatalf("answers %d before anybody has registered", code)
	}
	server.Register("/late", welcome())
	for _, path := range []string{"/in-time", "/late"} {
		if code, answer, _ := r.call(t, http.MethodPost, path, review(t)); code != 200 || !strings.Contains(answer, `"allowed":true`) {
			t.Errorf("%s answers %d %s", path, code, answer)
		}
	}
	if err := server.StartedChecker()(nil); err != nil {
		t.Errorf("the checker says %v", err)
	}
}

func TestWebhooksMayBeRegisteredWhileOthersAreCalled(t *testing.T) {
	server, port, roots := quick(t, nil)
	server.Register("/first", welcome())
	r := start(t, server, port, roots)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			server.Register(fmt.Sprintf("/late-%d", i), welcome())
		}
	}()
	for range 20 {
		if code, _, _ := r.call(t, http.MethodPost, "/first", review(t)); code != 200 {
			t.Errorf("answers %d", code)
		}
	}
	<-done
	if code, _, _ := r.call(t, http.MethodPost, "/late-49", review(t)); code != 200 {
		t.Errorf("the last one answers %d", code)
	}
}

func TestAPathThatCannotBeServedIsReportedWhenItComesLate(t *testing.T) {
	var log bytes.Buffer
	server, port, roots := quick(t, func(o *controllerruntime.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r := start(t, server, port, roots)
	server.Register("POST /late", welcome())
	if err := server.StartedChecker()(nil); err == nil || !strings.Contains(err.Error(), "/late") {
		t.Errorf("the checker says %v", err)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "POST /late") {
		t.Errorf("nothing of it in the log:\n%s", log.String())
	}
}

func TestPathsThatAreTakenOrHaveNoSlashPanicAsInControllerRuntime(t *testing.T) {
	for _, path := range []string{"/a", "a"} {
		t.Run(path, func(t *testing.T) {
			server := controllerruntime.NewServer(webhook.Options{})
			server.Register("/a", welcome())
			defer func() {
				if recover() == nil {
					t.Error("the path is taken")
				}
			}()
			server.Register(path, welcome())
		})
	}
}

func TestAnAuthorityTakesThePlaceOfFiles(t *testing.T) {
	source, err := certificate.NewAuthority(certificate.AuthorityOptions{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server, port, _ := quick(t, func(o *controllerruntime.Options) { o.Certificate, o.CertDir = source, "/nowhere" })
	server.Register("/mutate", welcome())
	roots := x509.NewCertPool()
	r := start(t, server, port, roots)
	if !roots.AppendCertsFromPEM(source.CABundle()) {
		t.Fatal("no bundle")
	}
	if code, _, _ := r.call(t, http.MethodPost, "/mutate", review(t)); code != 200 {
		t.Errorf("answers %d", code)
	}
}

func TestTLSOptsMaySayWhereTheCertificateComesFrom(t *testing.T) {
	directory, roots := certificates(t)
	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server, port, _ := quick(t, func(o *controllerruntime.Options) {
		o.CertDir = "/nowhere"
		o.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			c.NextProtos, c.MinVersion = []string{"http/1.1"}, tls.VersionTLS12
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
		}}
	})
	server.Register("/mutate", welcome())
	if code, _, _ := start(t, server, port, roots).call(t, http.MethodPost, "/mutate", review(t)); code != 200 {
		t.Errorf("answers %d", code)
	}
}

// Clients negotiate the versions, ciphers and curves that TLSOpts set.
func TestTLSOptsSayWhatIsSpoken(t *testing.T) {
	for name, tc := range map[string]struct {
		opts, client func(*tls.Config)
		refused      bool
	}{
		"the least version":                    {func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, true},
		"an old version is the server's least": {func(c *tls.Config) { c.MinVersion = tls.VersionTLS10 }, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, true},
		"the last version":                     {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, true},
		"a cipher suite": {func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384} }, func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
		}, true},
		"a curve":            {func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP384} }, func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }, true},
		"the curve they say": {func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP384} }, func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP384} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, port, roots := quick(t, func(o *controllerruntime.Options) { o.TLSOpts = []func(*tls.Config){tc.opts} })
			server.Register("/mutate", welcome())
			start(t, server, port, roots)
			config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
			tc.client(config)
			conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), config)
			if err == nil {
				err = conn.Handshake()
				_ = conn.Close()
			}
			if (err != nil) != tc.refused {
				t.Errorf("the handshake: %v", err)
			}
		})
	}
}

// Handlers that a project adds to the mux are served, for any method.
func TestHandlersOnTheMuxAreServed(t *testing.T) {
	mux := http.NewServeMux()
	server, port, roots := quick(t, func(o *controllerruntime.Options) { o.WebhookMux = mux })
	server.Register("/mutate", welcome())
	mux.HandleFunc("GET /files/", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "file "+r.URL.Path) })
	r := start(t, server, port, roots)
	server.WebhookMux().HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.Method, " ", string(body), " ", err)
	})
	for _, tc := range []struct {
		method, path, body, want string
		code                     int
	}{
		{http.MethodGet, "/files/a", "", "file /files/a", 200},
		{http.MethodPut, "/files/a", "x", "", 404},
		{http.MethodPut, "/token", "hello", "PUT hello <nil>", 200},
		{http.MethodGet, "/mutate", "", "request body is empty", 200},
		{http.MethodPost, "/mutate", "{", "unexpected end of JSON input", 200},
		{http.MethodGet, "/nothing", "", "", 404},
	} {
		code, body, _ := r.call(t, tc.method, tc.path, tc.body)
		if code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s %s: %d %q, want %d with %q", tc.method, tc.path, code, body, tc.code, tc.want)
		}
	}

	// Controller-runtime tells a body of length 0 in chunks from none.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/mutate", io.NopCloser(strings.NewReader("")))
	if err != nil {
		t.Fatal(err)
	}
	request.TransferEncoding, request.Header = []string{"chunked"}, http.Header{"Content-Type": {"application/foo"}}
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(body), "contentType=application/foo, expected application/json") {
		t.Errorf("an empty body in chunks: %s, %v", body, err)
	}
}

// On a loopback address, as in a project's tests, there is no other replica to call, so the
// server does not drain.
func TestAServerOnLoopbackDoesNotDrain(t *testing.T) {
	directory, roots := certificates(t)
	port := freeport.For(t)
	server, err := controllerruntime.New(controllerruntime.Options{Options: webhook.Options{Host: "127.0.0.1", Port: port, CertDir: directory}})
	if err != nil {
		t.Fatal(err)
	}
	server.Register("/mutate", welcome())
	r := start(t, server, port, roots)
	r.call(t, http.MethodPost, "/mutate", review(t))
	began := time.Now()
	r.stop()
	if err := <-r.done; err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("ended after %s with %v", time.Since(began), err)
	}
}

func TestASwitchedOffServerReturnsAtOnce(t *testing.T) {
	server := controllerruntime.NewServer(webhook.Options{Port: -1})
	server.Register("/mutate", welcome())
	if err := server.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := server.StartedChecker()(nil); err != nil {
		t.Error(err)
	}
	server.Register("/late", welcome()) // has no effect
}

func TestProblemsAreNamed(t *testing.T) {
	directory, _ := certificates(t)
	for name, tc := range map[string]struct {
		options webhook.Options
		path    string
		inNew   bool
		want    string
	}{
		"files that are missing":        {webhook.Options{CertDir: t.TempDir()}, "/a", false, "tls.crt"},
		"a certificate of another name": {webhook.Options{CertDir: directory, CertName: "other.crt"}, "/a", false, "other.crt"},
		"a client CA that is missing":   {webhook.Options{CertDir: directory, ClientCAName: "ca.crt"}, "/a", false, "ca.crt"},
		"a TLS option that would be ignored": {webhook.Options{CertDir: directory, TLSOpts: []func(*tls.Config){
			func(c *tls.Config) { c.SessionTicketsDisabled = true },
		}}, "/a", true, "SessionTicketsDisabled"},
		"versions without those that are safe": {webhook.Options{CertDir: directory, TLSOpts: []func(*tls.Config){
			func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 },
		}}, "/a", true, "MaxVersion"},
		"an invalid port":              {webhook.Options{CertDir: directory, Port: 70000}, "/a", true, "70000"},
		"a path that the server takes": {webhook.Options{CertDir: directory}, "/readyz", false, "/readyz"},
		"a pattern instead of a path":  {webhook.Options{CertDir: directory}, "POST /a", false, "POST /a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := controllerruntime.New(controllerruntime.Options{Options: tc.options})
			if (err != nil) != tc.inNew {
				t.Errorf("New says %v", err)
			}
			server := controllerruntime.NewServer(tc.options)
			server.Register(tc.path, welcome())
			if err := server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Start says %v; want something of %s", err, tc.want)
			}
		})
	}
	source, err := certificate.NewFiles(certificate.FilesOptions{CertFile: filepath.Join(directory, "tls.crt"), KeyFile: filepath.Join(directory, "tls.key"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = controllerruntime.New(controllerruntime.Options{Certificate: source, Options: webhook.Options{TLSOpts: []func(*tls.Config){
		func(c *tls.Config) { c.GetCertificate = source.GetCertificate },
	}}})
	if err == nil || !strings.Contains(err.Error(), "choose one") {
		t.Errorf("two certificates: %v", err)
	}
}

// Projects wait for a certificate by os.IsNotExist, which does not see through wrapped errors.
func TestAFileThatIsMissingIsToldByItsError(t *testing.T) {
	directory, _ := certificates(t)
	for name, options := range map[string]webhook.Options{
		"certificate": {CertDir: t.TempDir()},
		"client CA":   {CertDir: directory, ClientCAName: "ca.crt"},
	} {
		options.Host, options.Port = "127.0.0.1", freeport.For(t)
		if err := controllerruntime.NewServer(options).Start(t.Context()); !os.IsNotExist(err) || !strings.HasPrefix(err.Error(), "webhook server: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallersHaveACertificateOfTheClientCA(t *testing.T) {
	given, roots := options(t)
	given.ClientCAName = "tls.crt"
	server := controllerruntime.NewServer(given)
	server.Register("/mutate", welcome())
	r := start(t, server, given.Port, roots)
	if code, body, _ := r.call(t, http.MethodPost, "/mutate", review(t)); code != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d %s", code, body)
	}
	if code, body, _ := r.call(t, http.MethodGet, "/readyz", ""); code != http.StatusOK {
		t.Errorf("a probe: %d %s", code, body)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(given.CertDir, "tls.crt"), filepath.Join(given.CertDir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	transport := r.client.Transport.(*http.Transport)
	transport.CloseIdleConnections()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
	if code, body, _ := r.call(t, http.MethodPost, "/mutate", review(t)); code != http.StatusOK || !strings.Contains(body, "welcome") {
		t.Errorf("with a certificate: %d %s", code, body)
	}

	_, err = controllerruntime.New(controllerruntime.Options{Options: given, Serving: &serving.Options{Authenticate: func(*http.Request) error { return nil }}})
	if err == nil || !strings.Contains(err.Error(), "choose one") {
		t.Errorf("two ways to authenticate: %v", err)
	}
}

func TestTLSOptionsMayRequireCertificatesOfClients(t *testing.T) {
	server, port, roots := quick(t, func(o *controllerruntime.Options) {
		o.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool() }}
	})
	server.Register("/mutate", welcome())
	r := start(t, server, port, roots)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/mutate", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := r.client.Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("without a certificate: %s", response.Status)
	}
}

// A handler may send a part of its answer before the rest.
func TestHandlersMayFlush(t *testing.T) {
	server, port, roots := quick(t, nil)
	read := make(chan struct{})
	server.Register("/parts", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		select {
		case <-read:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "second")
	}))
	r := start(t, server, port, roots)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/parts", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	part := make([]byte, len("first"))
	if _, err := io.ReadFull(response.Body, part); err != nil || string(part) != "first" {
		t.Errorf("%q, %v", part, err)
	}
	close(read)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "second" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestTheDefaultDrainFitsIntoTheManagersGracePeriod(t *testing.T) {
	const grace, lastRequests = 30 * time.Second, 5 * time.Second
	if o := controllerruntime.ServingOptions(); o.DrainMin == 0 || o.DrainTimeout+lastRequests >= grace {
		t.Errorf("drains from %s to %s", o.DrainMin, o.DrainTimeout)
	}
}

func mustURL(t *testing.T, path string) *url.URL {
	t.Helper()
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
