// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/objects"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// staticPolicies renames the policies and bindings of a text for static manifests.
func staticPolicies(text string, names ...string) string {
	for _, name := range names {
		text = strings.ReplaceAll(text, "name: "+name+"}", "name: "+name+".static.k8s.io}")
		text = strings.ReplaceAll(text, "policyName: "+name, "policyName: "+name+".static.k8s.io")
	}
	// kube-apiserver takes a document that begins with a brace for JSON.
	return regexp.MustCompile(`(?m)^\{(apiVersion: .*), (kind: .*), (metadata: .*), (spec: .*)\}$`).ReplaceAllString(text, "$1\n$2\n$3\n$4")
}

// TestStaticPoliciesOnARealAPIServer starts an API server of its own, because its flags name the manifests. Static policies come
// before others, and see policies.
func TestStaticPoliciesOnARealAPIServer(t *testing.T) {
	if minor := lab.KubernetesMinor(t); minor < 37 {
		gate, lacks := release.Version{Minor: minor}.Lacks(release.StaticPolicies)
		if !lacks {
			t.Errorf("1.%d is taken as one that reads %s", minor, gate.What)
		}
		return
	}
	folder := t.TempDir()
	never := "  reinvocationPolicy: Never\n"
	texts := map[string]string{
		"mutating":   staticPolicies(strings.Replace(mutating("z", "[JSONPatch{op: 'add', path: '/metadata/labels/first', value: 'static'}]", never, ""), "['*'], resources", "[CREATE], resources", 1), "z"),
		"validating": staticPolicies(strings.Replace(validating("guard", "{expression: '!object.metadata.name.startsWith(\"forbidden\")', message: no such policy}", "", ""), onPods, "matchConstraints: {resourceRules: [{apiGroups: [admissionregistration.k8s.io], apiVersions: ['*'], operations: [CREATE], resources: ['*']}]}", 1), "guard"),
	}
	config := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for plugin, text := range texts {
		directory := filepath.Join(folder, plugin)
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, "policies.yaml"), []byte(strings.TrimSuffix(text, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		name := strings.ToUpper(plugin[:1]) + plugin[1:] + "AdmissionPolicy"
		config += fmt.Sprintf("- {name: %s, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: %sConfiguration, staticManifestsDir: %s}}\n", name, name, directory)
	}
	file := filepath.Join(folder, "admission.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cp, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: append(slices.Clone(lab.SharedFlags), "--admission-control-config-file="+file)})
	t.Cleanup(cp.Kill)
	if err != nil {
		t.Fatal(err)
	}
	of, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clients, client := kubernetes.NewForConfigOrDie(of), dynamic.NewForConfigOrDie(of)
	stored, _, err := manifest.Parse("with.yaml", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {kubernetes.io/metadata.name: default}}}\n---\n"+
		strings.Replace(mutating("a", "[JSONPatch{op: 'add', path: '/metadata/labels/second', value: object.metadata.labels.?first.orValue('nothing')}]", never, ""), "['*'], resources", "[CREATE], resources", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := created(t, of, stored[1:]); err != nil {
		t.Fatal(err)
	}
	static, err := objects.ReadStatic([]string{filepath.Join(folder, "mutating"), filepath.Join(folder, "validating")})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(about string) (*chain.Result, *chain.Run) {
		r := run(t, append(slices.Clone(stored), static...), about, func(r *chain.Run) { r.Request.Namespace, r.FromFiles = "default", true })
		got, err := r.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got, r
	}

	here, r := ask("{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}")
	sent := &corev1.Pod{}
	if err := json.Unmarshal(r.Request.Object.Raw, sent); err != nil {
		t.Fatal(err)
	}
	var there map[string]string
	for deadline := time.Now().Add(20 * time.Second); there["second"] == "" && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		pod, err := clients.CoreV1().Pods("default").Create(t.Context(), sent, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		there = pod.Labels
	}
	labels, _, _ := unstructured.NestedStringMap(here.Object, "metadata", "labels")
	if fmt.Sprint(labels) != fmt.Sprint(there) || labels["second"] != "static" {
		t.Errorf("here: %v; the API server: %v", labels, there)
	}
	for name, refuses := range map[string]bool{"forbidden-x": true, "other": false} {
		policy := strings.Split(validating(name, "{expression: 'true'}", "", ""), "---\n")[0]
		here, r := ask(policy)
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(r.Request.Object.Raw, u); err != nil {
			t.Fatal(err)
		}
		_, err := client.Resource(schema.GroupVersionResource(r.Request.Resource)).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if (here.Denied != nil) != refuses || (err != nil) != refuses || refuses && !strings.Contains(here.Denied.Message, "no such policy") {
			t.Errorf("%s: here: %+v; the API server: %v", name, here.Denied, err)
		}
	}
}

func TestStaticManifestsThatTheAPIServerDoesNotRead(t *testing.T) {
	folder := func(text string) string {
		directory := t.TempDir()
		if err := os.WriteFile(filepath.Join(directory, "a.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return directory
	}
	for name, tc := range map[string]struct{ text, want string }{
		"another kind": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a.static.k8s.io}}", "ConfigMap a.static.k8s.io is not for static manifests"},
		"a name":       {validating("v", "{expression: 'true'}", "", ""), "its name has to end in .static.k8s.io"},
		"a parameter":  {staticPolicies(validating("v", "{expression: 'true'}", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n", ""), "v"), "a policy has no paramKind"},
		"its reference": {staticPolicies(mutating("m", "[]", "", ", paramRef: {name: p, parameterNotFoundAction: Deny}"), "m"),
			"a binding has no paramRef"},
		"a binding without policy": {strings.Replace(staticPolicies(validating("v", "{expression: 'true'}", "", ""), "v"), "policyName: v.static.k8s.io", "policyName: v", 1), "there is no such policy v"},
	} {
		t.Run(name, func(t *testing.T) {
			static, err := objects.ReadStatic([]string{folder(tc.text)})
			if err == nil {
				_, err = run(t, static, pod, nil).Do(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "a.yaml:") {
				t.Errorf("%v", err)
			}
		})
	}
	static, err := objects.ReadStatic([]string{folder(staticPolicies(validating("v", "{expression: 'true'}", "", ""), "v"))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(t, static, pod, func(r *chain.Run) { r.Release = release.Version{Minor: 36, Patch: 5} }).Do(t.Context())
	if err != nil || !strings.Contains(strings.Join(got.Unknown, "\n"), "whether Kubernetes 1.36.5 reads admission policies in static manifests") {
		t.Errorf("%+v, %v", got, err)
	}
}
