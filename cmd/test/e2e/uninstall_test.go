// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// command runs a command line of sallyport, and returns all that it printed.
func (e *env) command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), e.binary, args...).CombinedOutput()
	return string(out), err
}

// doctor runs the command about a configuration. Calls that other tests have had refused are
// counted for the same webhook: without --window=0 it would watch for 10 s whether more are.
func (e *env) doctor(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	return e.command(t, append([]string{"doctor", "--window=0s", "--kubeconfig", e.kubeconfig, "--configuration-name", name}, args...)...)
}

func (e *env) gone(t *testing.T, key client.ObjectKey, object client.Object) bool {
	t.Helper()
	err := e.client.Get(t.Context(), key, object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

func testUninstall(t *testing.T, e *env) {
	name := e.namespace(t, "uninstall")
	flags := []string{"uninstall", "--configuration-name", name, "--authority-secret", name + "/ca"}
	args := func(more ...string) []string {
		return append(append(flags[:len(flags):len(flags)], "--kubeconfig", e.kubeconfig), more...)
	}
	s := e.serve(t, name, "--authority-secret", name+"/ca")
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))

	out, err := e.command(t, args()...)
	if err == nil || !strings.Contains(out, "scale the server down first") || !strings.Contains(out, "lease "+name+"/ca") {
		t.Fatalf("uninstalled while a server leads: %v\n%s", err, out)
	}
	s.stop(t)

	nobody := rest.CopyConfig(e.config)
	nobody.Impersonate.UserName, nobody.Impersonate.Groups = "nobody", []string{"system:authenticated"}
	out, err = e.command(t, append(flags[:len(flags):len(flags)], "--kubeconfig", sallyporttest.Kubeconfig(t, nobody), "--force")...)
	if err == nil || !strings.Contains(out, "forbidden") || !strings.Contains(out, "a kubeconfig that has the permission") {
		t.Errorf("without rights: %v\n%s", err, out)
	}

	configuration := "mutatingwebhookconfiguration.admissionregistration.k8s.io/" + name
	out, err = e.command(t, args("--all", "--dry-run")...)
	judging := "validatingwebhookconfiguration.admissionregistration.k8s.io/" + name
	want := configuration + " deleted (dry run)\n" + judging + " deleted (dry run)\nsecret/ca of namespace " + name + " deleted (dry run)\nlease.coordination.k8s.io/ca of namespace " + name + " deleted (dry run)\n"
	if err != nil || out != want {
		t.Errorf("dry run: %v\n%s", err, out)
	}
	key := client.ObjectKey{Namespace: name, Name: "ca"}
	if e.gone(t, key, &corev1.Secret{}) || e.gone(t, client.ObjectKey{Name: name}, &admissionregistrationv1.MutatingWebhookConfiguration{}) {
		t.Fatal("a dry run removed something")
	}

	if out, err = e.command(t, args()...); err != nil || out != configuration+" deleted\n"+judging+" deleted\n" {
		t.Errorf("%v\n%s", err, out)
	}
	pod := simplePod(name, "after")
	e.create(t, pod)
	if len(pod.Spec.Containers[0].Env) != 0 {
		t.Error("a pod was injected without a webhook")
	}
	if e.gone(t, key, &corev1.Secret{}) {
		t.Error("the Secret went without --all")
	}
	if out, err = e.command(t, args("--all")...); err != nil || !strings.Contains(out, "secret/ca") || strings.Contains(out, configuration) {
		t.Errorf("%v\n%s", err, out)
	}
	if !e.gone(t, key, &corev1.Secret{}) || !e.gone(t, key, &coordinationv1.Lease{}) {
		t.Error("the authority is still there")
	}
	if out, err = e.command(t, args("--all")...); err != nil || out != "" {
		t.Errorf("nothing was there: %v\n%s", err, out)
	}
}

// testOwner serves with the rights that manifests prints for an owner; the collector
// itself is not run, it knows what to do with a reference.
func testOwner(t *testing.T, e *env) {
	name := e.namespace(t, "owner")
	printed, err := exec.CommandContext(t.Context(), e.binary, "manifests", "--service", name+"/webhooks", "--configuration-name", name,
		"--owner", "clusterrole/"+name, "--part", "rbac").Output()
	if err != nil {
		t.Fatal(err)
	}
	apply := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "--kubeconfig", e.kubeconfig, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(string(printed))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	config := rest.CopyConfig(e.config)
	config.Impersonate.UserName = "system:serviceaccount:" + name + ":sallyport"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + name, "system:authenticated"}
	kubeconfig := sallyporttest.Kubeconfig(t, config)
	e.serve(t, name, "--kubeconfig", kubeconfig, "--authority-secret", name+"/sallyport-authority", "--owner", "clusterrole/"+name)

	role, configuration := &rbacv1.ClusterRole{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	for _, object := range []client.Object{role, configuration} {
		if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	want := metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name, UID: role.UID}
	if got := configuration.OwnerReferences; len(got) != 1 || got[0] != want {
		t.Errorf("owners are %+v, want %+v", got, want)
	}

	for owner, message := range map[string]string{"clusterrole/none": "forbidden", "clusterrole/" + name + "/x": "write clusterrole/NAME", "namespace/x": "write clusterrole/NAME"} {
		out, err := e.command(t, "serve", "--kubeconfig", kubeconfig, "--url", "https://127.0.0.1:9443", "--owner", owner)
		if err == nil || !strings.Contains(out, message) {
			t.Errorf("--owner %s: %v\n%s", owner, err, out)
		}
	}
	out, err := e.command(t, "serve", "--kubeconfig", e.kubeconfig, "--url", "https://127.0.0.1:9443", "--owner", "clusterrole/none")
	if err == nil || !strings.Contains(out, "create it first") {
		t.Errorf("an owner that is not there: %v\n%s", err, out)
	}
}
