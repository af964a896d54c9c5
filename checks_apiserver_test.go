// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	k8sclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
)

// settingsOn returns settings for a server on this host, with its own namespace and
// only its objects, and the address of its probes.
func settingsOn(t *testing.T, app *sallyport.App, client *rest.Config, log io.Writer) (settings sallyport.Settings, probes string) {
	settings = app.DefaultSettings()
	settings.Client, settings.Logger = client, slog.New(slog.NewTextHandler(log, nil))
	namespace := lab.Namespace(t, client)
	settings.LeaderElection.Namespace = namespace
	settings.Registration.NamespaceSelector = metav1.SetAsLabelSelector(map[string]string{corev1.LabelMetadataName: namespace})
	unregisterAtEnd(t, client, settings.Registration.Name)
	probes = fmt.Sprintf("127.0.0.1:%d", freeport.For(t))
	settings.Serving.BindAddress, settings.Serving.SecurePort, settings.Serving.MetricsBindAddress = "127.0.0.1", int32(freeport.For(t)), probes
	settings.Serving.DrainMin, settings.Serving.DrainTimeout = 0, 0
	settings.Registration.URL = fmt.Sprintf("https://127.0.0.1:%d", settings.Serving.SecurePort)
	return settings, probes
}

// unregisterAtEnd deletes the named webhook configurations, which servers leave behind,
// after those started from now on have ended.
func unregisterAtEnd(t *testing.T, client *rest.Config, name string) {
	t.Helper()
	configurations := kubernetes.NewForConfigOrDie(client).AdmissionregistrationV1()
	t.Cleanup(func() {
		for _, err := range []error{
			configurations.MutatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{}),
			configurations.ValidatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
}

// awaitProbe polls until the answer has the status and the text.
func awaitProbe(t *testing.T, url string, status int, part string) {
	t.Helper()
	eventually(t, func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status || !strings.Contains(string(text), part) {
			return fmt.Errorf("%s answers %d, not %d with %q: %s, %w", url, resp.StatusCode, status, part, text, err)
		}
		return nil
	})
}

// Checks that a controller adds to its manager are part of /readyz and /livez, with and
// without webhooks in the process. The reason of a failure is in the log, not in the
// answer.
func TestChecksOfControllersCountOnARealAPIServer(t *testing.T) {
	client := lab.APIServer(t)
	for _, webhooks := range []bool{true, false} {
		t.Run(fmt.Sprintf("webhooks %t", webhooks), func(t *testing.T) {
			var synced, stuck atomic.Bool
			name := fmt.Sprintf("checks-%t", webhooks)
			app, err := sallyport.New(name,
				sallyport.WithWebhooks(mutating("a.pods.example.com")),
				sallyport.WithController("one", func(m manager.Manager) error {
					ready := m.AddReadyzCheck("inventory", func(*http.Request) error {
						if !synced.Load() {
							return errors.New("the inventory at 192.0.2.1 does not answer")
						}
						return nil
					})
					return errors.Join(ready, m.AddHealthzCheck("loop", func(*http.Request) error {
						if stuck.Load() {
							return errors.New("the loop has not turned for a minute")
						}
						return nil
					}))
				}))
			if err != nil {
				t.Fatal(err)
			}
			log := &lab.Log{}
			settings, probes := settingsOn(t, app, client, log)
			unready := http.StatusServiceUnavailable
			if !webhooks { // controller-runtime answers
				settings.Webhooks, unready = nil, http.StatusInternalServerError
			}
			run(t, app, settings)

			awaitProbe(t, "http://"+probes+"/readyz", unready, "inventory")
			awaitProbe(t, "http://"+probes+"/livez", http.StatusOK, "ok")
			synced.Store(true)
			awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
			stuck.Store(true)
			awaitProbe(t, "http://"+probes+"/livez", http.StatusInternalServerError, "loop")
			for _, reason := range []string{"the inventory at 192.0.2.1 does not answer", "the loop has not turned for a minute"} {
				if count := strings.Count(log.String(), reason); count != 1 {
					t.Errorf("%d times in the log: %s\n%s", count, reason, log)
				}
			}
		})
	}
}

// A normal start and end log nothing that needs attention.
func TestHealthyStartsAndEndsWarnOfNothingOnARealAPIServer(t *testing.T) {
	client := lab.APIServer(t)
	configMaps := kubernetes.NewForConfigOrDie(client).CoreV1().ConfigMaps(lab.Namespace(t, client))
	if _, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reconciled := make(chan struct{})
	var once sync.Once
	app, err := sallyport.New("healthy",
		sallyport.WithWebhooks(mutating("a.pods.example.com")),
		sallyport.WithController("seer", func(m manager.Manager) error {
			return builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
				func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
					once.Do(func() { close(reconciled) })
					// Those of other tests may be gone.
					return reconcile.Result{}, k8sclient.IgnoreNotFound(m.GetClient().Get(ctx, request.NamespacedName, &corev1.ConfigMap{}))
				}))
		}),
		sallyport.WithComponent(func(env sallyport.Environment) (sallyport.Component, error) {
			var read atomic.Bool
			return sallyport.Component{
				Name: "table",
				Ready: func() error {
					if !read.Load() {
						return errors.New("not read yet")
					}
					return nil
				},
				Run: func(ctx context.Context) error {
					read.Store(true)
					env.Changed()
					<-ctx.Done()
					return nil
				},
			}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	log := &lab.Log{}
	settings, probes := settingsOn(t, app, client, log)
	settings.Certificate.AuthoritySecret, settings.Authentication.PrivatePaths = settings.LeaderElection.Namespace+"/healthy-authority", hosting.PrivatePathsAlways
	t.Cleanup(func() { // after run has seen the end
		if text := log.String(); strings.Contains(text, "level=WARN") || strings.Contains(text, "level=ERROR") {
			t.Errorf("the log of a healthy start and end:\n%s", text)
		}
	})
	run(t, app, settings)
	<-reconciled
	awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
	awaitProbe(t, "http://"+probes+"/readyz?verbose", http.StatusOK, "[+] registration")
}
