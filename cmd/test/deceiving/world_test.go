// SPDX-License-Identifier: Apache-2.0

package deceiving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	serialized "sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/test/lab"
)

// patience is how long anything may take that needs no more than a moment.
const patience = 2 * time.Minute

// administrator is whose requests they are, unless a case says otherwise.
const administrator, administrators = "harness", "system:masters,system:authenticated"

// A world is an API server of its own, with all plugins of a cluster, and the command. Cases are
// about what plugins and definitions do that tests of others do without, or break.
type world struct {
	binary, kubeconfig, folder string
	config                     *rest.Config
	client                     dynamic.Interface
	mapper                     meta.ResettableRESTMapper
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{binary: lab.Command(t, "cmd/sallyport"), folder: t.TempDir()}
	cp, err := lab.StartControlPlane(t.Context(), w.folder, lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: []string{"--allow-privileged"}})
	t.Cleanup(cp.Kill)
	if err != nil {
		t.Fatalf("starting the API server: %v", err)
	}
	w.kubeconfig = cp.Kubeconfig
	if w.config, err = clientcmd.BuildConfigFromFlags("", cp.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.config.QPS = -1
	w.config.WarningHandler = rest.NoWarnings{}
	log.SetLogger(logr.Discard()) // of envtest
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: patience}); err != nil {
		t.Fatal(err)
	}
	if w.client, err = dynamic.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	w.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(w.config)))
	return w
}

// objects reads objects from a file of a case. Those without a namespace get that of the case.
func (w *world) objects(t *testing.T, c *deceivingCase, path string) []*unstructured.Unstructured {
	t.Helper()
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		mapping, err := w.mapping(object)
		namespaced := err != nil && c.set["resource"] != "" || err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(c.id())
		}
		out = append(out, object)
	}
	var all []string
	for _, object := range out {
		text, err := serialized.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	if err := os.WriteFile(path, []byte(strings.Join(all, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) mapping(object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	kind := object.GroupVersionKind()
	return w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// resource returns a client of an object's kind, in its namespace.
func (w *world) resource(client dynamic.Interface, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := w.mapping(object)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return client.Resource(mapping.Resource), nil
}

// create creates what a case needs, with its status: no controller writes that of a quota.
func (w *world) create(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		client, err := w.resource(w.client, object)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
			continue
		}
		if object.GetKind() == "CustomResourceDefinition" {
			w.awaitDefinition(t, object)
		}
		if status, ok := object.Object["status"]; ok {
			stored.Object["status"] = status
			if _, err := client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
				t.Fatalf("status of %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
}

func (w *world) awaitDefinition(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	client, err := w.resource(w.client, object)
	if err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t.Context(), t, patience, object.GetName()+" to be established", func(ctx context.Context) (bool, error) {
		stored, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(stored.Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(conditions), "status:True type:Established"), nil
	})
	w.mapper.Reset()
}

// settle makes the namespace of a case, unless one of its objects is it, and writes a file
// with it for commands that read no cluster. Then it creates the objects.
func (w *world) settle(t *testing.T, c *deceivingCase, folder string, objects []*unstructured.Unstructured) (file string) {
	t.Helper()
	if c.set["namespace"] == "missing" {
		return ""
	}
	var namespace *unstructured.Unstructured
	var others []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "Namespace" && object.GetName() == c.id() {
			namespace = object
		} else {
			others = append(others, object)
		}
	}
	if namespace == nil {
		namespace = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": c.id(), "labels": map[string]any{corev1.LabelMetadataName: c.id()},
		}}}
		inFile := namespace.DeepCopy()
		if c.set["namespace"] == "terminating" { // as kubectl gets it then
			inFile.Object["status"] = map[string]any{"phase": string(corev1.NamespaceTerminating)}
		}
		text, err := serialized.Marshal(inFile.Object)
		if err != nil {
			t.Fatal(err)
		}
		file = filepath.Join(folder, "namespace.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.create(t, namespace)
	if c.set["account"] != "none" {
		w.create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{
			"name": "default", "namespace": c.id(),
		}}})
	}
	w.create(t, others...)
	return file
}

// request sends the request of a case, and returns the API server's refusal. What it
// creates is deleted again.
func (w *world) request(t *testing.T, c *deceivingCase, object *unstructured.Unstructured) error {
	t.Helper()
	config := rest.CopyConfig(w.config)
	if user := c.set["user"]; user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: strings.Split(c.set["groups"], ",")}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	of, err := w.resource(client, object)
	var subresources []string
	if resource, subresource, ok := strings.Cut(c.set["resource"], "/"); ok {
		var mapping schema.GroupVersionResource
		mapping, err = w.mapper.ResourceFor(schema.GroupVersionResource{Group: map[string]string{"deployments": "apps"}[resource], Resource: resource})
		of, subresources = client.Resource(mapping).Namespace(object.GetNamespace()), []string{subresource}
	}
	if err != nil {
		return err // a kind that does not exist
	}
	var dry []string
	if c.set["dry"] == "true" {
		dry = []string{metav1.DryRunAll}
	}
	manager := c.set["manager"]
	switch operation := c.set["operation"]; operation {
	case "", "CREATE":
		var created *unstructured.Unstructured
		if len(subresources) > 0 {
			_, err = of.Create(t.Context(), object, metav1.CreateOptions{DryRun: dry, FieldManager: manager}, subresources...)
			break
		}
		created, err = of.Create(t.Context(), object, metav1.CreateOptions{DryRun: dry, FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
		if err == nil && len(dry) == 0 {
			now := int64(0)
			if deleted := of.Delete(t.Context(), created.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); deleted != nil && !apierrors.IsNotFound(deleted) {
				t.Errorf("deleting %s: %v", created.GetName(), deleted)
			}
		}
	case "UPDATE":
		_, err = of.Update(t.Context(), object, metav1.UpdateOptions{DryRun: dry, FieldManager: manager}, subresources...)
	case "DELETE":
		err = of.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{DryRun: dry})
	default:
		t.Fatalf("there are no requests with operation %s", operation)
	}
	return err
}

// expect holds that the API server does what the case was written for.
func (c *deceivingCase) expect(t *testing.T, refusal error) {
	t.Helper()
	switch {
	case refusal == nil && c.set["server"] == "refuses":
		t.Error("the API server accepts it: this is not the case it was meant to be")
	case refusal != nil && c.set["server"] == "accepts":
		t.Errorf("the API server refuses it: this is not the case it was meant to be: %v", refusal)
	case refusal != nil && !strings.Contains(refusal.Error(), c.set["because"]):
		t.Errorf("the API server refuses it for another reason than %q: %v", c.set["because"], refusal)
	}
}

// run runs the command, and returns its status and all that it prints.
func (w *world) run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(w.folder, "none")) // a cluster is one that is named
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("sallyport %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), "$ sallyport " + strings.Join(args, " ") + "\n" + string(out)
}

// asks tells whether a case asks a tool.
func (c *deceivingCase) asks(tool string) bool {
	tools := c.set["tools"]
	return tools == "" || strings.Contains(","+tools+",", ","+tool+",")
}
