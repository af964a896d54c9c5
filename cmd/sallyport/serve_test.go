// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
)

// nowhere writes a kubeconfig for an API server that does not answer.
func nowhere(t *testing.T) string {
	t.Helper()
	return file(t, "kubeconfig", `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`)
}

// quick returns flags for a server on free ports that receives no calls.
func quick(t *testing.T) []string {
	return []string{
		"serve", "--kubeconfig", nowhere(t), "--url", "https://127.0.0.1:9443", "--bind-address", "127.0.0.1", "--secure-port", "0",
		"--metrics-bind-address", "127.0.0.1:0",
	}
}

func TestProblemsInFlagsOfServeAreAllNamed(t *testing.T) {
	kubeconfig := nowhere(t)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"nothing is said": {nil, []string{"--service: registration.service: Required value: set it or url", "--kubeconfig: kubeconfig: not in a cluster"}},
		"one of everything": {
			[]string{
				"--kubeconfig", "not-there", "--log-level", "loud", "--log-format", "xml", "-v", "-1",
				"--service", "webhooks", "--configuration-name", "A", "--failure-policy", "fail",
				"--certificate-source", "vault", "--authority-secret", "x", "--secure-port", "65536", "--metrics-bind-address", "8080",
			},
			[]string{
				"--kubeconfig: ", "not-there", `--log-level: log.level: Unsupported value: "loud"`, `--log-format: log.format: Unsupported value: "xml"`, "--verbosity: log.verbosity: Invalid value: -1",
				"--service: registration.service.namespace: Required value", "--configuration-name: ",
				`--failure-policy: registration.failurePolicy: Unsupported value: "fail": supported values: "Fail", "Ignore"`,
				`--certificate-source: certificate.source: Unsupported value: "vault": supported values: "Authority", "Files"`, `--authority-secret: certificate.authoritySecret: Invalid value: "x"`,
				"--secure-port: serving.securePort: Invalid value: 65536", `--metrics-bind-address: serving.metricsBindAddress: Invalid value: "8080"`,
			},
		},
		"a selector that cannot be read": {[]string{"--namespace-selector", "a b"}, []string{`invalid argument "a b" for "--namespace-selector" flag: `, "unable to parse requirement"}},
		"an unknown flag":                {[]string{"--drain-max", "1s"}, []string{"unknown flag: --drain-max; see 'sallyport serve --help'"}},
		"a service and a URL": {
			[]string{"--kubeconfig", kubeconfig, "--service", "a/b", "--url", "https://127.0.0.1"}, []string{"--url: registration.url: Forbidden: not together with service"},
		},
		"an invalid service with a port":      {[]string{"--kubeconfig", kubeconfig, "--service", "a/b:https"}, []string{`"a/b:https"`, "1 to 65535"}},
		"a service with port 0":               {[]string{"--kubeconfig", kubeconfig, "--service", "a/b:0"}, []string{"1 to 65535"}},
		"a service with an invalid name":      {[]string{"--kubeconfig", kubeconfig, "--service", "a/b.c"}, []string{"--service: registration.service.name: Invalid value"}},
		"a URL without TLS":                   {[]string{"--kubeconfig", kubeconfig, "--url", "http://127.0.0.1"}, []string{"--url: registration.url: Invalid value: ", "https"}},
		"files without a certificate":         {[]string{"--kubeconfig", kubeconfig, "--url", "https://127.0.0.1", "--certificate-source", "Files"}, []string{"certificate.certFile: Required value", "certificate.privateKeyFile: Required value"}},
		"files that are of no use":            {[]string{"--kubeconfig", kubeconfig, "--url", "https://127.0.0.1", "--tls-cert-file", "x", "--tls-ca-file", "y"}, []string{"--tls-cert-file: certificate.certFile: Forbidden: only with the source Files", "--tls-ca-file: certificate.caFile: Forbidden: only with the source Files"}},
		"a Secret that is of no use":          {[]string{"--kubeconfig", kubeconfig, "--url", "https://127.0.0.1", "--certificate-source", "Files", "--tls-cert-file", "x", "--tls-private-key-file", "y", "--authority-secret", "a/b"}, []string{"--authority-secret: certificate.authoritySecret: Forbidden"}},
		"files that are not there":            {[]string{"--kubeconfig", kubeconfig, "--url", "https://127.0.0.1", "--certificate-source", "Files", "--tls-cert-file", "no.crt", "--tls-private-key-file", "no.key"}, []string{"no.crt"}},
		"an invalid kubeconfig":               {[]string{"--kubeconfig", file(t, "config", "{"), "--url", "https://127.0.0.1"}, []string{"--kubeconfig: "}},
		"an authority without a host to sign": {[]string{"--kubeconfig", kubeconfig, "--registration", "None"}, []string{"--service: registration.service: Required value: set it or url"}},
		"a password in the URL stays secret":  {[]string{"--kubeconfig", kubeconfig, "--url", "https://me:s3cret@127.0.0.1"}, []string{"--url: ", "user information"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyport(t, append([]string{"serve"}, tc.args...)...)
			got.wantError(t, tc.want...)
			if strings.Contains(got.stderr, "s3cret") {
				t.Errorf("stderr gives a secret away:\n%s", got.stderr)
			}
		})
	}
}

func TestServeFailsIfItsPortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The server waits up to half a minute for the other process to end. The test stops it once
	// it logs that it waits.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &lab.Log{}
	go func() {
		defer cancel()
		_ = lab.Await(ctx, time.Minute, "the server to wait", func(context.Context) error { // the log is compared below
			if !strings.Contains(stderr.String(), "msg=waiting") {
				return errors.New(stderr.String())
			}
			return nil
		})
	}()
	status := run(ctx, append(quick(t), "--secure-port", port, "--log-level", "warn"), strings.NewReader(""), &stdout, stderr)
	got := result{status, stdout.String(), stderr.String()}
	got.wantError(t, "sallyport: serving: listen for webhooks", "address already in use")
}

func TestServeNeedsNoKubeconfigForWebhooksThatReadNothing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	port := strconv.Itoa(freeport.For(t))
	const head = configHead + "serving: {drainMin: 0s}\nregistration: {mode: None}\n"
	path := file(t, "sallyport.yaml", head+"webhooks: [{name: imagepull}, {name: servicetype}]\n")
	args := []string{
		"serve", "--config", path, "--url", "https://127.0.0.1:" + port, "--bind-address", "127.0.0.1", "--secure-port", port, "--metrics-bind-address", "0",
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &lab.Log{}
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, strings.NewReader(""), &stdout, stderr) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if err := lab.Await(ctx, time.Minute, "the server", func(context.Context) error {
		resp, err := client.Get("https://127.0.0.1:" + port + "/readyz")
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	// A webhook that needs one cannot be enabled while it runs, and the log says so.
	if err := os.WriteFile(path, []byte(head+"webhooks: [{name: imagepull}, {name: poddefault}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lab.Await(ctx, time.Minute, "the log", func(context.Context) error {
		if !strings.Contains(stderr.String(), "webhook poddefault reads from the cluster: the server was started without a client: set --kubeconfig and restart it") {
			return errors.New(stderr.String())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	cancel()
	if status := <-ended; status != 0 {
		t.Errorf("status %d\n%s", status, stderr)
	}
	for name, args := range map[string][]string{
		"a webhook reads":              {"--registration", "None", "--webhooks", "poddefault"},
		"it registers the webhooks":    {"--webhooks", "imagepull"},
		"the API server is asked":      {"--registration", "None", "--webhooks", "imagepull", "--authentication", "Delegated"},
		"the authority is in a Secret": {"--registration", "None", "--webhooks", "imagepull", "--authority-secret", "a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			sallyport(t, append([]string{"serve", "--url", "https://127.0.0.1:1"}, args...)...).wantError(t, "--kubeconfig: kubeconfig: not in a cluster")
		})
	}
}
