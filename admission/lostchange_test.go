// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

var (
	mutations = flag.Int("mutations", 10_000, "how many changes handlers make in objects sent over HTTP")
	seed      = flag.Int64("seed", 1, "of the objects and changes")
)

// Callers send random objects to typed handlers, over TLS. The handlers change them at random,
// and memory is collected meanwhile. Each object with its patch must be the handler's result.
func TestNoChangeIsLostOverHTTP(t *testing.T) {
	const callers = 4
	wanted := *mutations
	if testing.Short() {
		wanted /= 10
	}
	var made, calls atomic.Int64
	var running sync.WaitGroup
	var handlers []*changer
	for i := range callers {
		handlers = append(handlers, &changer{number: i, random: rand.New(rand.NewSource(*seed*callers + int64(i)))})
	}
	address, pool := serveChanges(t, handlers)
	for i, c := range handlers {
		running.Go(func() {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: i%2 == 1}
			defer transport.CloseIdleConnections()
			caller := caller{url: "https://" + address, client: &http.Client{Transport: transport}, changer: c}
			for made.Load() < int64(wanted) && !t.Failed() {
				n, err := caller.call(t.Context(), int(calls.Add(1)))
				if err != nil {
					t.Errorf("caller %d of seed %d: %v", i, *seed, err)
				}
				made.Add(int64(n))
			}
		})
	}
	running.Wait()
	t.Logf("%d changes in %d calls", made.Load(), calls.Load())
}

// kinds are the types of the objects, each with the path of its webhook.
var kinds = []struct {
	path   string
	object func() apiruntime.Object
	handle func(*changer) admission.Handler
}{
	{"pods", func() apiruntime.Object { return &corev1.Pod{} }, func(c *changer) admission.Handler {
		change := admission.Mutate(func(_ context.Context, o *corev1.Pod) error { return c.change(o) })
		return admission.Chain(change, change)
	}},
	{"deployments", func() apiruntime.Object { return &appsv1.Deployment{} }, func(c *changer) admission.Handler {
		return admission.Mutate(func(_ context.Context, o *appsv1.Deployment) error { return c.change(o) })
	}},
	{"shapes", func() apiruntime.Object { return &shapes{} }, func(c *changer) admission.Handler {
		return admission.Mutate(func(_ context.Context, o *shapes) error { return c.change(o) })
	}},
	{"trees", func() apiruntime.Object { return &unstructured.Unstructured{} }, func(c *changer) admission.Handler {
		return admission.Mutate(func(_ context.Context, o *unstructured.Unstructured) error { return c.change(o) })
	}},
}

// serveChanges serves webhooks of all kinds for each changer until the test ends.
func serveChanges(t *testing.T, changers []*changer) (address string, pool *x509.CertPool) {
	t.Helper()
	certificate, pool := selfSigned()
	options := serving.DefaultOptions()
	options.BindAddress, options.SecurePort, options.MetricsBindAddress = "127.0.0.1", 0, "0"
	options.DrainMin, options.DrainTimeout = 0, 0
	options.Logger = slog.New(slog.DiscardHandler)
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	for i, c := range changers {
		for _, kind := range kinds {
			webhook := admission.Mutating(kind.path+".example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("things")), kind.handle(c))
			handler, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			options.Routes = append(options.Routes, serving.Route{
				Path: fmt.Sprintf("/%d/%s", i, kind.path),
				Answer: func(ctx context.Context, w http.ResponseWriter, call serving.Call) {
					handler.Answer(ctx, w, call.Request.Header, call.Body)
				},
			})
		}
	}
	server, err := serving.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server.Addr().String(), pool
}

// selfSigned returns httptest's certificate of 127.0.0.1.
func selfSigned() (*tls.Certificate, *x509.CertPool) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &server.TLS.Certificates[0], pool
}

// A caller sends objects to one changer's webhooks, one after the other.
type caller struct {
	url     string
	client  *http.Client
	changer *changer
}

// call sends an object and returns how many changes the handler made, all of which the answer has.
func (c *caller) call(ctx context.Context, number int) (changes int, err error) {
	at := c.changer.random.Intn(len(kinds))
	kind, object := kinds[at], kinds[at].object()
	c.changer.begin(object)
	raw, err := json.Marshal(object)
	if err != nil {
		return 0, err
	}
	const unknown = `{"unknown":{"n":9007199254740993},`
	raw = append([]byte(unknown), raw[1:]...)
	body := fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"%d","kind":{"group":"","version":"v1","kind":%q},`+
		`"resource":{"group":"","version":"v1","resource":"things"},"operation":"CREATE","userInfo":{},"object":%s}}`, number, reflect.TypeOf(object).Elem().Name(), raw)
	patch, err := c.post(ctx, fmt.Sprintf("%s/%d/%s?timeout=30s", c.url, c.changer.number, kind.path), number, body)
	if err != nil {
		return 0, err
	}
	patched := raw
	if len(patch) > 0 {
		operations, err := jsonpatchv4.DecodePatch(patch)
		if err != nil {
			return 0, err
		}
		if patched, err = operations.Apply(raw); err != nil {
			return 0, fmt.Errorf("%w\nobject: %s\npatch: %s", err, raw, patch)
		}
	}
	want, changes, done := c.changer.end()
	if err := sameObject(kind.object, patched, want); err != nil {
		return 0, fmt.Errorf("%w\nobject: %s\npatch: %s\nresult: %s\nwhat was done: %q", err, raw, patch, want, done)
	}
	return changes, nil
}

func (c *caller) post(ctx context.Context, url string, number int, body []byte) (patch []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("%s: %s, %w", response.Status, text, err)
	}
	if answer := review.Response; !answer.Allowed || string(answer.UID) != fmt.Sprint(number) {
		return nil, fmt.Errorf("call %d: %s", number, text)
	}
	return review.Response.Patch, nil
}

// sameObject compares a patched object with a handler's result, as encoding/json reads both.
func sameObject(empty func() apiruntime.Object, patched, want []byte) error {
	tree := func(raw []byte) (tree any, unknown any, err error) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&tree); err != nil {
			return nil, nil, err
		}
		unknown = tree.(map[string]any)["unknown"]
		delete(tree.(map[string]any), "unknown")
		return tree, unknown, nil
	}
	again := func(raw []byte) ([]byte, error) {
		object := empty()
		if _, untyped := object.(*unstructured.Unstructured); untyped {
			return raw, nil
		}
		if err := json.Unmarshal(raw, object); err != nil {
			return nil, err
		}
		return json.Marshal(object)
	}
	_, unknown, err := tree(patched)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(unknown, map[string]any{"n": json.Number("9007199254740993")}) {
		return fmt.Errorf("the unknown member is %v", unknown)
	}
	got, err := again(patched)
	if err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return nil
	}
	if want, err = again(want); err != nil {
		return err
	}
	x, _, err := tree(got)
	if err != nil {
		return err
	}
	y, _, err := tree(want)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(x, y) {
		return fmt.Errorf("a change is lost:\npatched: %s\nwanted:  %s", got, want)
	}
	return nil
}
