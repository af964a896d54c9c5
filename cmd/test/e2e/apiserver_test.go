// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// testAPIServerAway cuts the server's way to the API server, which itself stays
// up and goes on asking.
func testAPIServerAway(t *testing.T, e *env) {
	name := e.namespace(t, "away")
	link := newLink(t, e.config.Host)
	config := rest.CopyConfig(e.config)
	config.Host = link.url
	s := e.serve(t, name, "--kubeconfig", sallyporttest.Kubeconfig(t, config))
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))

	contact := func() float64 {
		at, err := strconv.ParseFloat(s.metric(t, "sallyport_poddefaults_last_contact_timestamp_seconds"), 64)
		if err != nil || at == 0 {
			t.Fatalf("the last contact was at %v (%v)", at, err)
		}
		return at
	}
	connected := contact()
	link.cut()
	for i := range 20 {
		pod := simplePod(name, fmt.Sprintf("while-away-%d", i))
		e.create(t, pod)
		if len(pod.Spec.Containers[0].Env) != 1 {
			t.Fatal("a pod was not injected while the API server was away")
		}
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("the server is not ready any more (%v)", err)
	}

	away := contact()
	if away < connected {
		t.Errorf("the last contact goes back from %v to %v", connected, away)
	}

	link.mend()
	e.createSoon(t, podDefault(name, "later", kubeflowv1alpha1.PodDefaultSpec{Labels: map[string]string{"later": "true"}}),
		simplePod(name, "probe"), meta.Mark("later"))
	if again := contact(); again <= away {
		t.Errorf("the last contact stays at %v", again)
	}
}

// A link forwards TCP connections until it is cut.
type link struct {
	url    string
	target string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	target := u.Host
	if target == "" {
		target = strings.TrimPrefix(to, "https://")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{url: "https://" + listener.Addr().String(), target: target}
	var done sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		done.Wait()
	})
	done.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			done.Go(func() { l.forward(in) })
		}
	})
	return l
}

func (l *link) forward(in net.Conn) {
	out, err := net.Dial("tcp", l.target)
	if err != nil || !l.hold(in, out) {
		_ = in.Close()
		if out != nil {
			_ = out.Close()
		}
		return
	}
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	both.Go(func() { pipe(out, in) })
	both.Go(func() { pipe(in, out) })
	both.Wait()
}

func (l *link) hold(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// testManifests applies what the command prints with kubectl, and runs the server
// with the rights that it gives, and no others.
func testManifests(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "manifests")
	service := name + "/webhooks"
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	printed, err := exec.Command(e.binary, "manifests", "--service", service, "--configuration-name", name,
		"--part", "crd", "--part", "rbac").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, printed, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	apply := exec.Command(kubectl, "--kubeconfig", e.kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", file)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	configurations, err := exec.Command(e.binary, "manifests", "--service", service, "--configuration-name", "dry-"+name,
		"--part", "configurations").Output()
	if err != nil {
		t.Fatal(err)
	}
	dryRun := exec.Command(kubectl, "--kubeconfig", e.kubeconfig, "apply", "--dry-run=server", "-f", "-")
	dryRun.Stdin = strings.NewReader(string(configurations))
	if out, err := dryRun.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply of the configurations: %v\n%s", err, out)
	}

	config := rest.CopyConfig(e.config)
	config.Impersonate.UserName = "system:serviceaccount:" + name + ":sallyport"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + name, "system:authenticated"}
	s := e.serve(t, name, "--kubeconfig", sallyporttest.Kubeconfig(t, config), "--authority-secret", name+"/sallyport-authority")
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	if strings.Contains(s.Log(), "forbidden") {
		t.Errorf("the server lacks a right:\n%s", s.Log())
	}
}

func testManyPodDefaults(t *testing.T, e *env) {
	t.Parallel() // it is the last, so that few servers have to read them all
	many := 200 * *times
	name := e.namespace(t, "many")
	createMany(t, e, name, many)
	s := e.serve(t, name)
	text := s.metric(t, "sallyport_poddefaults")
	if got, err := strconv.ParseFloat(text, 64); err != nil || int(got) < many {
		t.Errorf("the server knows %s PodDefaults, want %d (%v)", text, many, err)
	}
	pod := simplePod(name, "one-of-many")
	pod.Labels = map[string]string{"number-177": "true"}
	e.create(t, pod)
	if got := envNames(pod.Spec.Containers[0]); len(got) != 1 || got[0] != "NUMBER_177" {
		t.Errorf("env is %v", got)
	}
	none := simplePod(name, "none-of-many")
	e.create(t, none)
	if len(none.Annotations) > 0 {
		t.Errorf("annotations are %v", none.Annotations)
	}
}

// createMany creates PodDefaults that each select one label of their own.
func createMany(t *testing.T, e *env, namespace string, n int) {
	t.Helper()
	numbers := make(chan int)
	failures := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range numbers {
				pd := podDefault(namespace, fmt.Sprintf("number-%05d", i), kubeflowv1alpha1.PodDefaultSpec{
					Selector: metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprintf("number-%d", i): "true"}},
					Env:      []corev1.EnvVar{{Name: fmt.Sprintf("NUMBER_%d", i), Value: "1"}},
				})
				if err := e.client.Create(ctx, pd); client.IgnoreAlreadyExists(err) != nil {
					select {
					case failures <- err:
					default:
					}
					cancel()
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	workers.Wait()
	select {
	case err := <-failures:
		t.Fatal(err)
	default:
	}
}
