// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sallyport-io/sallyport/serving"
)

// A server limits what its routes have to answer. An application makes one for its webhooks.
func ExampleNew() {
	options := serving.DefaultOptions()
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("no certificate") }
	options.Routes = []serving.Route{{Path: "/echo", Answer: func(_ context.Context, w http.ResponseWriter, call serving.Call) {
		_, _ = w.Write(call.Body)
	}}}
	server, err := serving.New(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), method, "/echo", http.NoBody))
		fmt.Println(method, answer.Code)
	}
	// Output:
	// POST 200
	// GET 405
}
