// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/sallyport-io/sallyport/admission"
)

// TestAStartIsNoWarning: every start begins without a certificate, and so with nothing to
// register.
func TestAStartIsNoWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var why atomic.Value
		why.Store("poddefaults were not read yet")
		k, err := NewController(Options{
			Config: Config{Name: "a", Endpoint: Endpoint{URL: "https://127.0.0.1"}}, Client: fake.NewClientset().AdmissionregistrationV1(),
			Webhooks: func() []admission.Webhook { return nil }, Leading: func() bool { return true },
			CABundle: func() ([]byte, error) { return nil, errors.New(why.Load().(string)) },
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- k.Run(ctx) }()
		for range 5 {
			k.Notify()
			time.Sleep(time.Second)
		}
		why.Store("the certificate is not there yet")
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if text := log.String(); strings.Contains(text, "WARN") || strings.Count(text, "not registered yet") != 2 {
			t.Errorf("want each reason once and no warning, got:\n%s", text)
		}
	})
}
