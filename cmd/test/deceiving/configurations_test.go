// SPDX-License-Identifier: Apache-2.0

package deceiving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestConfigurationsOnARealAPIServer judges webhook configurations, conversions of
// definitions, and the file of serve.
func TestConfigurationsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	all, chosen := cases(t, "configurations")
	r := newResults(t, "configurations", all)
	w := newWorld(t)
	t.Run("cases", func(t *testing.T) {
		for _, c := range chosen {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				if _, ok := c.files["sallyport.yaml"]; ok {
					w.serves(t, r, c)
				} else {
					w.linted(t, r, c)
				}
			})
		}
	})
	r.end(t)
}

// linted compares lint with what the API server does with an object.
func (w *world) linted(t *testing.T, r *results, c *deceivingCase) {
	t.Helper()
	folder := t.TempDir()
	authority, err := json.Marshal(w.config.CAData)
	if err != nil {
		t.Fatal(err)
	}
	file := c.expand(t, folder, "object.yaml", "${ca}", strings.Trim(string(authority), `"`))
	status, output := w.run(t, "lint", "-f", file, "-o", "json")
	// An object is parsed only now: its file would have none of the faults of its text then.
	object := w.objects(t, c, file)[0]
	refusal := w.request(t, c, object)
	c.expect(t, refusal)
	r.add(t, c, "lint", refusal, lintVerdict(t, status, output, refusal != nil), output)
}

// lintVerdict reads the verdict from findings. An object that the API server accepts may have
// errors, but none of the rules that are the API server's own.
func lintVerdict(t *testing.T, status int, output string, refused bool) verdict {
	t.Helper()
	if status != 0 && status != 2 {
		return failed
	}
	_, text, _ := strings.Cut(output, "\n") // the command line
	var report struct {
		Findings []struct{ Rule, Severity string }
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&report); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	ofAPI := map[string]bool{}
	for _, rule := range lint.Rules() {
		ofAPI[rule.ID] = strings.Contains(rule.Source, "API validation")
	}
	for _, finding := range report.Findings {
		if finding.Severity == "error" && (refused || ofAPI[finding.Rule]) {
			return denies
		}
	}
	return fine
}

// serves compares config check with whether a server starts with a file and registers itself.
func (w *world) serves(t *testing.T, r *results, c *deceivingCase) {
	t.Helper()
	folder := t.TempDir()
	var ports [2]string
	for i := range ports {
		port, err := freeport.Get()
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = strconv.Itoa(port)
	}
	file := c.expand(t, folder, "sallyport.yaml", "${port}", ports[0], "${metrics}", ports[1])
	status, output := w.run(t, "config", "check", file)
	refusal := w.serve(t, c, folder, file, ports[0])
	c.expect(t, refusal)
	// A problem has the status of every other failure.
	r.add(t, c, "config check", refusal, judge(status, output, 1, ""), output)
}

// serve returns why a server does not start, or does not register itself.
func (w *world) serve(t *testing.T, c *deceivingCase, folder, file, port string) error {
	t.Helper()
	server, err := lab.Start(folder, lab.Program{Name: "sallyport", Path: w.binary, Args: []string{"serve", "--kubeconfig", w.kubeconfig, "--config", file}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Kill()
		for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			if err := w.client.Resource(configurations(resource)).Delete(context.WithoutCancel(t.Context()), c.id(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}()
	err = server.Await(t.Context(), patience/4, "the server to be registered", func(ctx context.Context) error {
		if _, err := lab.Get(ctx, lab.Probes, "https://127.0.0.1:"+port+"/readyz"); err != nil {
			return err
		}
		_, mutating := w.client.Resource(configurations("mutatingwebhookconfigurations")).Get(ctx, c.id(), metav1.GetOptions{})
		_, validating := w.client.Resource(configurations("validatingwebhookconfigurations")).Get(ctx, c.id(), metav1.GetOptions{})
		if mutating != nil && validating != nil {
			return errors.Join(mutating, validating)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, server.LogTail())
	}
	return nil
}

func configurations(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}
