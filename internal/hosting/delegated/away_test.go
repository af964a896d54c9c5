// SPDX-License-Identifier: Apache-2.0

package delegated_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/serving"
)

// An unavailable API server is not the caller's fault: it may retry.
func TestNobodyIsRefusedForGoodWhileTheAPIServerIsAway(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: fmt.Sprintf("http://127.0.0.1:%d", freeport.For(t)), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	authenticator, err := delegated.New(client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it is asked again for as long
	defer cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/label", nil)
	request.Header.Set("Authorization", "Bearer token")
	err = authenticator.Authenticate(request)
	if err == nil || errors.Is(err, serving.ErrUnauthenticated) || errors.Is(err, serving.ErrForbidden) {
		t.Errorf("got %v, want an error that says that nobody can tell", err)
	}
}
