// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

// testLostLease takes the lease away from a server.
func testLostLease(t *testing.T, e *env) {
	name := e.namespace(t, "lost-lease")
	s := e.serve(t, name, "--authority-secret", name+"/ca",
		lab.Set("leaderElection", "{leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}"))
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), poddefault.Mark("env"))
	eventually(t, "the lease to be taken away", func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "ca"}, lease); err != nil {
			return false, err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("somebody"), new(int32(3600))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		err := e.client.Update(ctx, lease)
		return err == nil, err
	})
	eventually(t, "the server to know that it does not lead", func(context.Context) (bool, error) {
		return strings.Contains(s.log.String(), "leading=false"), nil
	})
	pod := simplePod(name, "after")
	e.create(t, pod)
	if len(pod.Spec.Containers[0].Env) != 1 {
		t.Error("a pod was not injected by a server that does not lead")
	}
	if ok, err := s.ready(t.Context()); !ok || err != nil {
		t.Errorf("the server is not ready any more (%v)", err)
	}
}

// testPrivatePaths replaces the authority, whose keys make the paths, while pods are
// created one after the other.
func testPrivatePaths(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "private-paths")
	s := e.serve(t, name, "--authority-secret", name+"/ca", lab.Set("certificate.caPropagation", "2s")) // private paths are the default
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), poddefault.Mark("env"))
	path := func() string {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, configuration); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(*configuration.Webhooks[0].ClientConfig.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Path
	}
	before := path()
	public := before[:strings.LastIndex(before, "/")]
	forged := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","operation":"CREATE","namespace":"` + name + `",
		"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
		"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"use":"true"}},"spec":{"containers":[{"name":"main","image":"x"}]}}}}`)
	if code, body := s.post(t, http.MethodPost, public, "application/json", forged); code != http.StatusNotFound || strings.Contains(body, "FROM_PODDEFAULT") {
		t.Errorf("to whoever does not know the path the server says %d: %s", code, body)
	}
	if code, body := s.post(t, http.MethodPost, before, "application/json", forged); code != http.StatusOK || !strings.Contains(body, "patch") {
		t.Errorf("the review is no good as a test: %d, %s", code, body)
	}

	ctx, stop := context.WithCancel(t.Context())
	created := 0
	var creating sync.WaitGroup
	defer creating.Wait()
	defer stop()
	creating.Go(func() {
		for ; ctx.Err() == nil; created++ {
			pod := simplePod(name, fmt.Sprintf("during-%d", created))
			if err := e.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Errorf("pod %d: %v", created, err)
				return
			}
			if len(pod.Spec.Containers[0].Env) != 1 {
				t.Errorf("pod %d was not injected", created)
				return
			}
		}
	})
	out, err := e.command(t, "certificates", "rotate", "--wait", "--timeout", "1m", "--kubeconfig", e.kubeconfig, "--authority-secret", name+"/ca")
	if err != nil {
		t.Fatalf("rotate: %v\n%s\n%s", err, out, s.log)
	}
	eventually(t, "the old path to be answered no more", func(context.Context) (bool, error) {
		code, _ := s.post(t, http.MethodPost, before, "application/json", []byte("{}"))
		return code == http.StatusNotFound, nil
	})
	stop()
	creating.Wait()
	if after := path(); after == before || !strings.HasPrefix(after, public+"/") {
		t.Errorf("the path was %s and is %s", before, after)
	}
	if created == 0 {
		t.Error("no pod was created")
	}
	t.Logf("%d pods", created)
}

func testCertificatesErrors(t *testing.T, e *env) {
	name := e.namespace(t, "certificates-errors")
	nobody := rest.CopyConfig(e.config)
	nobody.Impersonate.UserName, nobody.Impersonate.Groups = "nobody", []string{"system:authenticated"}
	forbidden := sallyporttest.Kubeconfig(t, nobody)
	s := e.serve(t, name, "--authority-secret", name+"/ca", lab.Set("certificate.caPropagation", "1h"))
	e.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "other"}, StringData: map[string]string{"password": "hunter2"}})
	run := func(kubeconfig, command, secret string, more ...string) (string, error) {
		args := append([]string{"certificates", command, "--kubeconfig", kubeconfig, "--authority-secret", name + "/" + secret}, more...)
		return e.command(t, args...)
	}
	for _, command := range []string{"status", "rotate"} {
		for _, tc := range []struct{ name, kubeconfig, secret, want string }{
			{"not there", e.kubeconfig, "none", "no server has made it yet"},
			{"forbidden", forbidden, "ca", "somebody who may get and update"},
			{"no authority", e.kubeconfig, "other", "authority in Secret " + name + "/other"},
		} {
			out, err := run(tc.kubeconfig, command, tc.secret)
			if err == nil || !strings.Contains(out, tc.want) || strings.Contains(out, "hunter2") {
				t.Errorf("%s of a Secret that is %s: %v\n%s", command, tc.name, err, out)
			}
		}
	}
	if out, err := run(e.kubeconfig, "rotate", "ca"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run(e.kubeconfig, "rotate", "ca"); err == nil || !strings.Contains(out, "already going on") {
		t.Errorf("a second rotation: %v\n%s", err, out)
	}
	eventually(t, "the rotation to go on", func(context.Context) (bool, error) {
		out, err := run(e.kubeconfig, "status", "ca", "--configuration-name", name)
		return strings.Contains(out, "propagating"), err
	})
	if out, err := run(e.kubeconfig, "rotate", "ca"); err == nil || !strings.Contains(out, "phase propagating") {
		t.Errorf("a rotation in another one: %v\n%s", err, out)
	}
	s.stop(t)
}
