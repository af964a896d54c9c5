// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/cmd/commands"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/golden"
)

const installedNamespace = "crontab-system"

// installedService is the operator's, in the form of --service.
func installedService(port int) string { return fmt.Sprintf("%s/crontab:%d", installedNamespace, port) }

// run runs the operator's command with those of package commands, and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	app := operator(t)
	command := app.Command()
	commands.AddTo(command, app)
	var out, errors bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&errors)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// manifests are what the command prints for a server in the cluster that registers itself.
func manifests(t *testing.T, port int, parts ...string) string {
	t.Helper()
	out, err := run(t, "manifests", "--service", installedService(port), "--part", strings.Join(parts, ","), "--image", "registry.example.com/crontab:v1")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestManifestsOfTheOperator(t *testing.T) {
	golden.Equal(t, filepath.Join("testdata", "manifests.yaml"), manifests(t, 443, "namespace", "rbac", "service", "workload"))
}

// install applies with kubectl what the command manifests prints, and returns a client
// configuration with the token of the operator's service account and no other rights.
func install(t *testing.T, config *rest.Config, port int) *rest.Config {
	t.Helper()
	everything := filepath.Join(t.TempDir(), "installation.yaml")
	write := func(parts ...string) {
		t.Helper()
		if err := os.WriteFile(everything, []byte(manifests(t, port, parts...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(more ...string) string {
		t.Helper()
		out, err := kubectl(t.Context(), t, config, append([]string{"apply", "--server-side", "-f", everything}, more...)...)
		if err != nil {
			t.Fatalf("kubectl apply %q: %v\n%s", more, err, out)
		}
		return out
	}
	write("namespace") // without which a dry run knows no place for the others
	apply()
	write("namespace", "crd", "rbac", "service", "workload")
	if out := apply("--dry-run=server"); !strings.Contains(out, "deployment.apps/crontab serverside-applied (server dry run)") || strings.Contains(out, "Warning") {
		t.Errorf("a dry run says\n%s", out)
	}
	apply()
	crds := envtest.CRDInstallOptions{MaxTime: patience, PollInterval: 20 * time.Millisecond}
	if err := envtest.WaitForCRDs(config, []*apiextensionsv1.CustomResourceDefinition{crd(t)}, crds); err != nil {
		t.Fatal(err)
	}

	clients := kubernetes.NewForConfigOrDie(config)
	// There is no network of a cluster: the Services lead to this machine.
	for _, name := range []string{"crontab", "crontab-conversion"} {
		services := clients.CoreV1().Services(installedNamespace)
		if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}
		if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token, err := clients.CoreV1().ServiceAccounts(installedNamespace).CreateToken(t.Context(), "crontab", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := rest.AnonymousClientConfig(config)
	server.BearerToken = token.Status.Token
	return server
}

// uninstall removes what the operator has registered and what was applied, and sees that nothing
// of it is left. The operator has ended.
func uninstall(ctx context.Context, t *testing.T, config *rest.Config, port int) {
	t.Helper()
	args := func(config *rest.Config) []string {
		return []string{"uninstall", "--service", installedService(port), "--all", "--kubeconfig", sallyporttest.Kubeconfig(t, config)}
	}
	nobody := rest.CopyConfig(config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	_, err := run(t, append(args(nobody), "--force")...)
	if err == nil || !strings.Contains(err.Error(), `User "nobody" cannot get resource`) || !strings.Contains(err.Error(), "a kubeconfig that has the permission") {
		t.Errorf("without rights: %v", err)
	}

	out, err := run(t, args(config)...)
	if err != nil {
		t.Fatal(err)
	}
	removed := strings.Split(strings.TrimSpace(out), "\n")
	for _, want := range []string{
		"mutatingwebhookconfiguration.admissionregistration.k8s.io/crontab deleted", "validatingwebhookconfiguration.admissionregistration.k8s.io/crontab deleted",
		"secret/crontab-authority of namespace crontab-system deleted", "lease.coordination.k8s.io/crontab-authority of namespace crontab-system deleted",
		"lease.coordination.k8s.io/crontab of namespace crontab-system deleted",
	} {
		if !slices.Contains(removed, want) {
			t.Errorf("nothing of %q in\n%s", want, out)
		}
	}

	file := filepath.Join(t.TempDir(), "installation.yaml")
	if err := os.WriteFile(file, []byte(manifests(t, port, "namespace", "crd", "rbac", "service", "workload")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := kubectl(ctx, t, config, "delete", "--wait=false", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	clients := kubernetes.NewForConfigOrDie(config)
	for what, get := range map[string]func() error{
		"the mutating configuration": func() error {
			_, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "crontab", metav1.GetOptions{})
			return err
		},
		"the validating configuration": func() error {
			_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "crontab", metav1.GetOptions{})
			return err
		},
		"the authority": func() error {
			_, err := clients.CoreV1().Secrets(installedNamespace).Get(ctx, "crontab-authority", metav1.GetOptions{})
			return err
		},
		"the ClusterRole": func() error {
			_, err := clients.RbacV1().ClusterRoles().Get(ctx, "crontab", metav1.GetOptions{})
			return err
		},
		"the role for events": func() error {
			_, err := clients.RbacV1().Roles("default").Get(ctx, "crontab-events", metav1.GetOptions{})
			return err
		},
		"the Deployment": func() error {
			_, err := clients.AppsV1().Deployments(installedNamespace).Get(ctx, "crontab", metav1.GetOptions{})
			return err
		},
		"the PodDisruptionBudget": func() error {
			_, err := clients.PolicyV1().PodDisruptionBudgets(installedNamespace).Get(ctx, "crontab", metav1.GetOptions{})
			return err
		},
		"the Service for conversion": func() error {
			_, err := clients.CoreV1().Services(installedNamespace).Get(ctx, "crontab-conversion", metav1.GetOptions{})
			return err
		},
	} {
		if err := get(); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there (%v)", what, err)
		}
	}
	leases, err := clients.CoordinationV1().Leases(installedNamespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(leases.Items) != 0 {
		t.Errorf("leases are still there: %v (%v)", leases, err)
	}
}
