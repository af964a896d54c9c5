// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/sallyport-io/sallyport/cmd/internal/commands/contexts"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// TestSeveralClustersOnARealAPIServer has API servers that answer, one that was stopped, and one that accepts connections
// and never answers.
func TestSeveralClustersOnARealAPIServer(t *testing.T) {
	t.Parallel()
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	var stopped *rest.Config
	t.Run("stopped", func(t *testing.T) { stopped = sallyporttest.StartAPIServer(t) })
	one, other := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...)), sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	slow := rest.CopyConfig(one)
	slow.Host = "https://" + silent.Addr().String()

	config := clientcmdapi.NewConfig()
	for name, of := range map[string]*rest.Config{"a": one, "b": other, "c": other, "slow": slow, "stopped": stopped} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: of.Host, CertificateAuthorityData: of.CAData}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: of.CertData, ClientKeyData: of.KeyData, Token: of.BearerToken}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"drift --all-namespaces", "chain pods --list", "lint", "top --window 0", "doctor --window 0"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			var failed error
			cmd := newCommand()
			cmd.SetArgs(append(strings.Fields(command), "--kubeconfig", file, "--all-contexts", "--context-timeout", "20s", "-o", "json"))
			cmd.SetOut(&out)
			cmd.SetErr(&errOut)
			status := cli.Execute(t.Context(), cmd, func(err error) { failed = err })
			if status != 1 || failed == nil || failed.Error() != "2 of 5 clusters could not be read: slow, stopped" {
				t.Errorf("status %d, %v\n%s", status, failed, &errOut)
			}
			var all contexts.Results
			if err := json.Unmarshal(out.Bytes(), &all); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, r := range all.Contexts {
				read := r.Context != "slow" && r.Context != "stopped"
				if read != (r.Result != nil && r.Error == "") {
					t.Errorf("%s: status %d, error %q, result %v", r.Context, r.Status, r.Error, r.Result)
				}
				if r.Context == "stopped" && !strings.Contains(r.Error, "refused") {
					t.Errorf("the stopped API server: %s", r.Error)
				}
			}
		})
	}
}
