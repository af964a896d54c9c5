// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// Doctor finds nothing to fix in a sound installation, and names the rights that its service
// account lacks.
func TestDoctorOnARealAPIServer(t *testing.T) {
	t.Parallel()
	config := sallyporttest.StartAPIServer(t)
	port, metrics, secret := freeport.For(t), freeport.For(t), installedNamespace+"/crontab-authority"
	server := install(t, config, port)
	start(t, server, port, operator(t), nil, func(s *sallyport.Settings) {
		s.Certificate.AuthoritySecret = secret // as a server in the cluster has it
		s.LeaderElection.LeaderElect, s.LeaderElection.Namespace = true, installedNamespace
		s.Serving.MetricsBindAddress = fmt.Sprintf("127.0.0.1:%d", metrics)
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{
		"doctor", "--kubeconfig", sallyporttest.Kubeconfig(t, config), "--window", "0s", "--authority-secret", secret,
		"--service-account", installedNamespace + "/crontab", "--replica", fmt.Sprintf("http://127.0.0.1:%d", metrics),
	}
	eventually(ctx, t, "doctor finds nothing to fix", func() error {
		out, err := run(t, args...)
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		for _, want := range []string{
			"ok    configurations  crontab registers default.crontabs.stable.example.com, validate.crontabs.stable.example.com\n",
			"ok    reachability    it answers at 127.0.0.1:", "ok    certificate     every caBundle verifies", "ok    authority       every caBundle holds it",
			"ok    replicas        http://127.0.0.1:", "leads\n", "ok    rights          system:serviceaccount:crontab-system:crontab has the ",
		} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("nothing of %q in\n%s", want, out)
			}
		}
		if strings.Contains(out, "PodDefault") || strings.Contains(out, "guard") {
			t.Errorf("doctor of an operator speaks of PodDefaults:\n%s", out)
		}
		return nil
	})

	roles := kubernetes.NewForConfigOrDie(config).RbacV1().ClusterRoles()
	role, err := roles.Get(ctx, "crontab", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "cronjobs") })
	if _, err := roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "doctor names the rights that were taken away", func() error {
		out, err := run(t, args...)
		if !errors.Is(err, cli.ExitFound) || strings.Count(out, "fix   ") != 1 ||
			!strings.Contains(out, "fix   rights          system:serviceaccount:crontab-system:crontab cannot create cronjobs, ") ||
			!strings.Contains(out, "apply the output of 'crontab manifests --part rbac'") {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		return nil
	})

	out, err := run(t, append(args, "--server-flag=--registration=manifests")...)
	if !errors.Is(err, cli.ExitFound) || !strings.Contains(out, "fix   rights          the rights that system:serviceaccount:crontab-system:crontab needs are unknown: ") {
		t.Errorf("doctor, with a flag that is invalid: %v\n%s", err, out)
	}
}

// doctorKnowsTheNames runs doctor on the operator behind its Service, without a flag that names
// anything. The Service leads out of the cluster, so that some checks find something to fix.
func doctorKnowsTheNames(t *testing.T, config *rest.Config) {
	t.Helper()
	out, err := run(t, "doctor", "--kubeconfig", sallyporttest.Kubeconfig(t, config), "--window", "0s")
	if !errors.Is(err, cli.ExitFound) {
		t.Errorf("doctor: %v", err)
	}
	for _, want := range []string{
		"fix   service         Service crontab-system/crontab has no port ", "ok    authority ", " holds the lease crontab\n",
		"ok    rights          system:serviceaccount:crontab-system:crontab has the ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing of %q in\n%s", want, out)
		}
	}
}
