// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestFlagsOfTheConsoleThatDoNotFit(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an address that others reach":       {[]string{"--bind-address", "0.0.0.0"}, "others would read with your rights"},
		"a header that any client can send":  {[]string{"--user-header", "X-User"}, "any client can send the header"},
		"networks without a header":          {[]string{"--trusted-networks", "10.0.0.0/8"}, "only valid with --user-header"},
		"a network that is an address":       {[]string{"--user-header", "X-User", "--trusted-networks", "10.0.0.1"}, "write a network such as 10.0.0.0/8"},
		"client certificates without TLS":    {[]string{"--user-header", "X-User", "--client-ca-file", "ca.crt"}, "client certificates need TLS"},
		"a certificate without its key":      {[]string{"--user-header", "X-User", "--trusted-networks", "10.0.0.0/8", "--tls-cert-file", "tls.crt"}, "belong together"},
		"a prefix that is no path":           {[]string{"--user-header", "X-User", "--trusted-networks", "10.0.0.0/8", "--prefix", "sallyport/"}, "write a path such as /sallyport"},
		"a prefix that leads out":            {[]string{"--user-header", "X-User", "--trusted-networks", "10.0.0.0/8", "--prefix", "/../x"}, "write a path such as /sallyport"},
		"a port that does not exist":         {[]string{"--port", "70000"}, "70000"},
		"an argument":                        {[]string{"team-a"}, "--namespace"},
		"common names that nothing verifies": {[]string{"--user-header", "X-User", "--trusted-networks", "10.0.0.0/8", "--client-common-names", "gateway"}, "only valid with --client-ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sallyport(t, append([]string{"console"}, tc.args...)...); got.status != exitError || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
		})
	}
}

// The console runs without a cluster: it says so on its pages, and shows the cluster when it is back.
func TestTheConsoleServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	reader, stderr := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"console", "--no-browser", "--kubeconfig", kubeconfig}, strings.NewReader(""), io.Discard, stderr)
		_ = stderr.Close()
	}()
	line := make([]byte, 1024)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(string(line[:n]))
	client := &http.Client{Timeout: time.Minute}
	response, err := client.Get(url)
	if err != nil {
		t.Fatalf("%s: %v", line[:n], err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "The API server does not answer") {
		t.Errorf("status %d (%v):\n%s", response.StatusCode, err, body)
	}
	client.CloseIdleConnections()
	interrupt()
	if got := <-status; got != exitOK {
		t.Errorf("exit status %d", got)
	}
}
