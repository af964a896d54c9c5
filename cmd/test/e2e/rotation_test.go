// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/x509"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestRotation replaces the authority of three replicas by the command, and checks all
// the while that what is published accepts what they serve.
func TestRotation(t *testing.T) {
	t.Parallel()
	const name, host = "rotation", "webhooks.rotation.svc"
	config := lab.APIServer(t)
	namespace := lab.Namespace(t, config)
	client := kubernetes.NewForConfigOrDie(config)
	configurations := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	t.Cleanup(func() {
		if err := configurations.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()

	published := func() ([][]byte, error) {
		list, err := configurations.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return nil, err
		}
		var bundles [][]byte
		for _, item := range list.Items {
			bundles = append(bundles, item.Webhooks[0].ClientConfig.CABundle)
		}
		return bundles, nil
	}
	var replicas []*certificate.Authority
	for i := range 3 {
		authority, err := certificate.NewAuthority(certificate.AuthorityOptions{
			Secrets: client.CoreV1().Secrets(namespace), SecretName: name, DNSNames: []string{host},
			Propagation: time.Second, Leading: func() bool { return i == 0 }, Published: published, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, authority)
		group.Go(func() { _ = authority.Run(ctx) })
	}
	eventually(t, "certificates", func(context.Context) (bool, error) {
		for _, replica := range replicas {
			if err := replica.Ready(); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	url, none, ignore := "https://"+host, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	live, err := configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "a.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &ignore,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: replicas[0].CABundle()},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := live.Webhooks[0].ClientConfig.CABundle
	group.Go(func() { // what registration does
		for ctx.Err() == nil {
			changed := replicas[0].Changed()
			live.Webhooks[0].ClientConfig.CABundle = replicas[0].CABundle()
			updated, err := configurations.Update(ctx, live, metav1.UpdateOptions{})
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("publishing: %v", err)
				}
				return
			}
			live = updated
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	})
	checks := 0
	group.Go(func() {
		for lab.Sleep(ctx, 20*time.Millisecond) { // each phase lasts a second
			bundles, err := published()
			if err != nil {
				continue
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(bundles[0])
			for i, replica := range replicas {
				served, err := replica.GetCertificate(nil)
				if err == nil {
					_, err = served.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots})
				}
				if err != nil {
					t.Errorf("replica %d: %v", i, err)
				}
			}
			checks++
		}
	})

	binary, kubeconfig := lab.Command(t, "cmd/sallyport"), sallyporttest.Kubeconfig(t, config)
	command := func(args ...string) (string, error) {
		args = append([]string{"certificates"}, append(args, "--kubeconfig", kubeconfig, "--authority-secret", namespace+"/"+name)...)
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		return string(out), err
	}
	out, err := command("rotate", "--wait", "--timeout", "1m")
	if err != nil || !strings.Contains(out, "signing\n") || !strings.Contains(out, "done: the new authority is SHA-256 ") {
		t.Fatalf("rotate: %v\n%s", err, out)
	}
	eventually(t, "the old authority to be dropped everywhere", func(context.Context) (bool, error) {
		bundles, err := published()
		return err == nil && len(bundles) == 1 && string(bundles[0]) == string(replicas[1].CABundle()) && string(bundles[0]) != string(first), err
	})
	out, err = command("status", "--configuration-name", name)
	if err != nil || !strings.Contains(out, "steady") || !strings.Contains(out, "a.example.com") || strings.Contains(out, "PRIVATE") {
		t.Errorf("status: %v\n%s", err, out)
	}
	if out, err = command("status", "--configuration-name", name, "--output", "json"); err != nil || !strings.Contains(out, `"holdsSigner": true`) {
		t.Errorf("status: %v\n%s", err, out)
	}
	cancel()
	group.Wait()
	if checks == 0 {
		t.Error("nothing was checked")
	}
	t.Logf("%d checks", checks)
}
