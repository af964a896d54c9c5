// SPDX-License-Identifier: Apache-2.0

package deceiving

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestPodsOnARealAPIServer injects PodDefaults into pods. Some of them the API server then
// refuses.
func TestPodsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	all, chosen := cases(t, "pods")
	r := newResults(t, "pods", all)
	w := newWorld(t)
	// Which webhook gets a pod that nothing selects is not different from one that is down.
	early := map[string]*prepared{}
	for _, c := range chosen {
		if c.set["defaults"] == "early" {
			early[c.name] = w.prepare(t, c, t.TempDir())
			w.create(t, early[c.name].defaults...)
		}
	}
	server, err := lab.Serve(t.TempDir(), lab.Serving{Binary: w.binary, Kubeconfig: w.kubeconfig, ByURL: true},
		lab.Set("webhooks.poddefault.freshness", "Consistent"), lab.Set("certificate.caPropagation", "1s"),
		lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "500ms"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	if err := server.AwaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	w.awaitInjection(t)

	t.Run("cases", func(t *testing.T) {
		for _, c := range chosen {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p := early[c.name]
				if p == nil {
					p = w.prepare(t, c, t.TempDir())
				}
				w.pod(t, r, c, p)
			})
		}
	})
	r.end(t)
}

// prepared is what a case about pods begins with.
type prepared struct {
	folder   string
	with     []string // files for commands that read no cluster
	defaults []*unstructured.Unstructured
	file     string // with the object that commands are asked about
	object   *unstructured.Unstructured
	created  *unstructured.Unstructured // what the API server is asked for
}

func (w *world) prepare(t *testing.T, c *deceivingCase, folder string) *prepared {
	t.Helper()
	p := &prepared{folder: folder}
	path := c.expand(t, folder, "objects.yaml")
	objects := w.objects(t, c, path)
	if path != "" {
		p.with = append(p.with, path)
	}
	if file := w.settle(t, c, folder, objects); file != "" && c.set["alone"] != "true" {
		p.with = append(p.with, file)
	}
	if path := c.expand(t, folder, "poddefaults.yaml"); path != "" {
		p.defaults = w.objects(t, c, path)
		p.with = append(p.with, path)
	}
	p.file = c.expand(t, folder, "object.yaml")
	p.object = w.objects(t, c, p.file)[0]
	p.created = p.object
	if path := c.expand(t, folder, "created.yaml"); path != "" {
		p.created = w.objects(t, c, path)[0]
	}
	return p
}

// pod asks all commands about the object of a case, and the API server.
func (w *world) pod(t *testing.T, r *results, c *deceivingCase, p *prepared) {
	t.Helper()
	namespace, defaults := cmp.Or(p.object.GetNamespace(), c.id()), filepath.Join(p.folder, "poddefaults.yaml")
	type answer struct {
		tool   string
		v      verdict
		output string
	}
	var answers []answer
	ask := func(tool string, denied int, args ...string) {
		if c.asks(tool) {
			status, output := w.run(t, args...)
			answers = append(answers, answer{tool, judge(status, output, denied, c.set["note"]), output})
		}
	}
	// A preview is of the pods that run already.
	if len(p.defaults) > 0 && c.set["defaults"] != "early" && c.asks("preview") {
		pods, err := w.resource(w.client, p.created)
		if err != nil {
			t.Fatal(err)
		}
		if before, err := pods.Create(t.Context(), p.created, metav1.CreateOptions{}); err == nil {
			ask("preview", 3, "preview", "--kubeconfig", w.kubeconfig, "-n", namespace, "-f", defaults)
			now := int64(0)
			if err := pods.Delete(t.Context(), before.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.set["defaults"] != "early" {
		w.create(t, p.defaults...)
	}
	if c.set["namespace"] == "terminating" {
		if err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	refusal := w.request(t, c, p.created)
	c.expect(t, refusal)

	with := []string{}
	for _, file := range p.with {
		with = append(with, "--with", file)
	}
	ask("review", 3, append([]string{"review", "-n", namespace, "-f", p.file}, with...)...)
	ask("review-server", 3, append([]string{"review", "-n", namespace, "-f", p.file, "--server", "--kubeconfig", w.kubeconfig}, with...)...)
	ask("diff", 3, "diff", "--kubeconfig", w.kubeconfig, "-n", namespace, "-f", p.file)
	resource := cmp.Or(c.set["resource"], "pods")
	question := []string{"chain", resource, "-n", namespace, "-f", p.file, "--as", administrator}
	for group := range strings.SplitSeq(administrators, ",") {
		question = append(question, "--as-group", group)
	}
	ask("chain-cluster", 3, append(question, "--kubeconfig", w.kubeconfig)...)
	ask("chain-files", 3, append(append(question, with...), "--with", w.registered(t, p.folder))...)
	ask("test", 2, "test", "-f", w.suite(t, c, p))
	for _, a := range answers {
		r.add(t, c, a.tool, refusal, a.v, a.output)
	}
}

// registered writes the webhook configurations of a server, for a command that reads no cluster.
func (w *world) registered(t *testing.T, folder string) string {
	t.Helper()
	status, output := w.run(t, "manifests", "--url", "https://127.0.0.1:9443", "--part", "configurations")
	if status != 0 {
		t.Fatal(output)
	}
	_, output, _ = strings.Cut(output, "\n") // the command line
	file := filepath.Join(folder, "registered.yaml")
	if err := os.WriteFile(file, []byte(output), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// suite writes a suite with one case, which expects that the object is allowed.
func (w *world) suite(t *testing.T, c *deceivingCase, p *prepared) string {
	t.Helper()
	var with []string
	for _, file := range p.with {
		with = append(with, filepath.Base(file))
	}
	text := fmt.Sprintf("apiVersion: test.sallyport.io/v1alpha1\nkind: Suite\nwith: [%s]\nnamespace: %s\ncases:\n- name: the object is allowed\n  objects: [object.yaml]\n  expect: {allowed: true}\n",
		strings.Join(with, ", "), c.id())
	file := filepath.Join(p.folder, "suite.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// awaitInjection waits until the API server calls the webhook.
func (w *world) awaitInjection(t *testing.T) {
	t.Helper()
	c := &deceivingCase{"pods", "sentinel", map[string]string{}, map[string]string{
		"poddefaults.yaml": "{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: sentinel}, spec: {selector: {}, labels: {sentinel: seen}}}\n",
		"object.yaml":      "{apiVersion: v1, kind: Pod, metadata: {name: sentinel}, spec: {containers: [{name: main, image: i}]}}\n",
	}}
	p := w.prepare(t, c, t.TempDir())
	w.create(t, p.defaults...)
	pods, err := w.resource(w.client, p.object)
	if err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t.Context(), t, patience, "the webhook to be called", func(ctx context.Context) (bool, error) {
		pod, err := pods.Create(ctx, p.object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		return pod.GetLabels()["sentinel"] == "seen", nil
	})
}
