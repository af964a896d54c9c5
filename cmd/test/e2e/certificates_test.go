// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
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

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testLostLease takes the lease away from a server.
func testLostLease(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "lost-lease")
	s := e.serve(t, name, "--authority-secret", name+"/ca",
		lab.Set("leaderElection", "{leaseDuration: 15s, renewDeadline: 4s, retryPeriod: 200ms}"))
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	eventually(t, "the lease to be taken away", func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "ca"}, lease); err != nil {
			return false, err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("somebody"), new(int32(2_000_000_000))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		err := e.client.Update(ctx, lease)
		return err == nil, err
	})
	eventually(t, "the server to know that it does not lead", func(context.Context) (bool, error) {
		return strings.Contains(s.Log(), "leading=false"), nil
	})
	led := strings.Count(s.Log(), "leading=true")
	pod := simplePod(name, "after")
	e.create(t, pod)
	if len(pod.Spec.Containers[0].Env) != 1 {
		t.Error("a pod was not injected by a server that does not lead")
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("the server is not ready any more (%v)", err)
	}
	doctor := func() string {
		out, _ := e.doctor(t, name, "--authority-secret", name+"/ca")
		return out
	}
	if out := doctor(); !strings.Contains(out, "fix   leader          somebody has taken the lease "+name+"/ca for 2000000000 s") {
		t.Errorf("doctor:\n%s", out)
	}
	// It is taken back from whoever does not renew it, whatever it says of its end.
	eventually(t, "the server to lead again", func(context.Context) (bool, error) {
		return strings.Count(s.Log(), "leading=true") > led, nil
	})
	if out := doctor(); !strings.Contains(out, "ok    leader ") {
		t.Errorf("doctor:\n%s", out)
	}
}

// testPrivatePaths replaces the authority, whose keys make the paths, while pods are
// created one after the other.
func testPrivatePaths(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "private-paths")
	s := e.serve(t, name, "--authority-secret", name+"/ca", lab.Set("certificate.caPropagation", "2s")) // private paths are the default
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
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

	stop := e.steadily(t, name)
	e.guessPaths(t, s, public)
	out, err := e.command(t, "certificates", "rotate", "--wait", "--timeout", "1m", "--kubeconfig", e.kubeconfig, "--authority-secret", name+"/ca")
	if err != nil {
		t.Fatalf("rotate: %v\n%s\n%s", err, out, s.Log())
	}
	eventually(t, "the old path to be answered no more", func(context.Context) (bool, error) {
		code, _ := s.post(t, http.MethodPost, before, "application/json", []byte("{}"))
		return code == http.StatusNotFound, nil
	})
	stop()
	if after := path(); after == before || !strings.HasPrefix(after, public+"/") {
		t.Errorf("the path was %s and is %s", before, after)
	}
}

// guessPaths asks for paths that nobody was told, from many sides at once. Each is answered
// before its body is read, and none leaves a trace.
func (e *env) guessPaths(t *testing.T, s *server, public string) {
	t.Helper()
	const callers = 16
	guesses := 400 * *times
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: callers} // the caller is not the one to be convinced
	defer transport.CloseIdleConnections()
	var guessing sync.WaitGroup
	for range callers {
		guessing.Go(func() {
			for range guesses / callers {
				segment := make([]byte, 16)
				_, _ = rand.Read(segment) // it never fails
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s%s/%x", s.URL, public, segment), strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				response, err := transport.RoundTrip(request)
				if err != nil {
					t.Errorf("a guess: %v", err)
					return
				}
				if response.StatusCode != http.StatusNotFound {
					t.Errorf("a guess is answered with %d", response.StatusCode)
				}
				_ = response.Body.Close()
			}
		})
	}
	guessing.Wait()
	if lines := strings.Count(s.Log(), "\n"); lines > 200 {
		t.Errorf("%d lines in the log:\n%.2000s", lines, s.Log())
	}
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
			{"forbidden", forbidden, "ca", "permission to get and update"},
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
	if out, err := run(e.kubeconfig, "rotate", "ca"); err == nil || !strings.Contains(out, "already in progress") {
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
