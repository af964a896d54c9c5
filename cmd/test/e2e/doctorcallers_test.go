// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

// testDoctorCallers has doctor say of servers whether a stranger may call them.
func testDoctorCallers(t *testing.T, e *env) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, ca, string(e.config.CAData))
	address, own := hostAddress(t)
	anybody := "skip: whether callers must authenticate cannot be seen from here"
	if own {
		anybody = "fix: any caller that reaches the port may call poddefault.sallyport.io"
	} else {
		address = "127.0.0.2" // where nobody listens
	}
	port := freeport.For(t)
	reached := fmt.Sprintf("https://%s:%d", address, port)
	for name, tc := range map[string]struct {
		args   []string
		url    string // if it is another one
		says   string
		status int
	}{
		"callers-private": {[]string{"--authority-secret", "callers-private/ca"}, "", "ok: the paths are private: only callers that can read the webhook configurations know them", 0},
		"callers-host":    {[]string{"--private-paths=Never"}, "", "ok: callers need not authenticate, but only processes on the host of the API server reach the server", 0},
		"callers-ca":      {[]string{"--private-paths=Never", "--authentication", "ClientCA", "--client-ca-file", ca}, "", "ok: callers must authenticate", 0},
		"callers-anybody": {[]string{"--private-paths=Never", "--url", reached, "--bind-address", "0.0.0.0", "--secure-port", fmt.Sprint(port)}, reached, anybody, 2},
	} {
		e.namespace(t, name)
		s := e.start(t, name, tc.args...)
		s.awaitReady(t)
		if tc.url == "" {
			tc.url = s.URL
		}
		eventually(t, "the webhook configuration "+name, func(ctx context.Context) (bool, error) { return e.registered(ctx, name, tc.url) })
		status, out, _ := e.look(t, "doctor", "-o", "json", "--window=0s", "--kubeconfig", e.kubeconfig, "--configuration-name", name)
		lines := doctorOf(t, out)
		expectLine(t, lines, "callers", tc.says)
		if tc.status == 2 && own && status != 2 {
			t.Errorf("%s: status %d", name, status)
		}
		for _, line := range lines["callers"] {
			if tc.status == 0 && strings.HasPrefix(line, "fix") {
				t.Errorf("%s: %s", name, line)
			}
		}
		s.stop(t)
		e.deleteConfiguration(t, name)
	}
}
