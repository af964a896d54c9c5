// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// steadily creates pods, one after the other and in dry runs, until stop is called: some fifteen a
// second, which leaves the machine to what happens meanwhile. What it is to notice, such as a certificate
// that nobody trusts yet or two leaders, lasts until somebody writes a configuration and the API server
// has heard of it. It fails the test if a pod is refused, or is not what the PodDefault of envPodDefault
// makes of it.
func (e *env) steadily(t *testing.T, namespace string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	created := 0
	var creating sync.WaitGroup
	creating.Go(func() {
		for ; ctx.Err() == nil; created++ {
			pod := simplePod(namespace, fmt.Sprintf("during-%d", created))
			if err := e.client.Create(context.WithoutCancel(ctx), pod, client.DryRunAll); err != nil {
				t.Errorf("pod %d: %v", created, err)
				return
			}
			if len(pod.Spec.Containers[0].Env) != 1 {
				t.Errorf("pod %d was not injected", created)
				return
			}
			lab.Sleep(ctx, 50*time.Millisecond)
		}
	})
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			creating.Wait()
			if created == 0 {
				t.Error("no pod was created")
			}
			t.Logf("%d pods", created)
		})
	}
	t.Cleanup(stop)
	return stop
}

// kubectl runs kubectl, which must succeed.
func (e *env) kubectl(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kubectl(), append([]string{"--kubeconfig", e.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// testSpoiledAuthority does to the Secret of the authority whatever somebody can do who may
// write it.
func testSpoiledAuthority(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "spoiled-authority")
	ownSecret := name + "/ca"
	s := e.serve(t, name, "--authority-secret", ownSecret, lab.Set("certificate.caPropagation", "1s")) // private paths, whose keys come from it, are the default
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	secret := &corev1.Secret{}
	read := func() {
		t.Helper()
		if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "ca"}, secret); err != nil {
			t.Fatal(err)
		}
	}
	read()
	good, foreign := secret.DeepCopy().Data, e.foreignAuthority(t, name)
	write := func(data map[string][]byte) {
		t.Helper()
		read()
		secret.Data = data
		if err := e.client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	with := func(key string, value []byte) map[string][]byte {
		data := map[string][]byte{}
		for k, v := range good {
			data[k] = v
		}
		data[key] = value
		return data
	}
	problem := func(want string) {
		t.Helper()
		eventually(t, "the metric of a problem to be "+want, func(context.Context) (bool, error) {
			return s.metric(t, "sallyport_certificate_problem") == want, nil
		})
	}
	doctor := func() string {
		out, _ := e.doctor(t, name, "--authority-secret", ownSecret)
		return out
	}
	stop := e.steadily(t, name)
	for what, data := range map[string]map[string][]byte{
		"emptied":                   {corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil},
		"with another key":          with(corev1.TLSPrivateKeyKey, foreign[corev1.TLSPrivateKeyKey]),
		"with another bundle":       with("ca-bundle.crt", foreign[corev1.TLSCertKey]),
		"in a phase that is none":   with("rotation-phase", []byte("upside down")),
		"with what is not PEM":      with(corev1.TLSCertKey, []byte("hunter2")),
		"in the middle of rotation": with("rotation-phase", []byte("signing")),
	} {
		write(data)
		problem("1")
		if out := doctor(); !strings.Contains(out, "fix   authority       Secret "+ownSecret+" holds no authority: ") || strings.Contains(out, "hunter2") {
			t.Errorf("%s: doctor:\n%s", what, out)
		}
		write(good)
		problem("0")
	}
	if !strings.Contains(s.Log(), "cannot be used: ") || strings.Contains(s.Log(), "hunter2") {
		t.Errorf("the log does not tell, or tells too much:\n%s", s.Log())
	}

	// What is deleted comes back as it was.
	if err := e.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret to be there again", func(ctx context.Context) (bool, error) {
		err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "ca"}, secret)
		return err == nil && bytes.Equal(secret.Data[corev1.TLSCertKey], good[corev1.TLSCertKey]), client.IgnoreNotFound(err)
	})

	// Another authority as a whole is taken over, without a call that fails.
	write(foreign)
	eventually(t, "the authority that was put there to be the only one published", func(ctx context.Context) (bool, error) {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := e.client.Get(ctx, client.ObjectKey{Name: name}, configuration); err != nil {
			return false, err
		}
		return bytes.Equal(bytes.TrimSpace(configuration.Webhooks[0].ClientConfig.CABundle), bytes.TrimSpace(foreign["ca-bundle.crt"])), nil
	})
	stop()
	if out := doctor(); !strings.Contains(out, "ok    authority ") || !strings.Contains(out, "ok    certificate ") {
		t.Errorf("doctor:\n%s", out)
	}
}

// foreignAuthority is the data of a Secret that holds another authority.
func (e *env) foreignAuthority(t *testing.T, namespace string) map[string][]byte {
	t.Helper()
	clients, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	other, err := certificate.NewAuthority(certificate.AuthorityOptions{
		Secrets: clients.CoreV1().Secrets(namespace), SecretName: "foreign", DNSNames: []string{"example.com"}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = other.Run(ctx) })
	defer running.Wait()
	defer cancel()
	secret := &corev1.Secret{}
	eventually(t, "another authority", func(ctx context.Context) (bool, error) {
		err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "foreign"}, secret)
		return err == nil, client.IgnoreNotFound(err)
	})
	return secret.Data
}

// testSpoiledIndex edits what the policy reads that stands in for injection, while a server
// runs: a pod is what it should be, or is refused with a reason, and all is soon as it was.
func testSpoiledIndex(t *testing.T, e *env) {
	name := e.namespace(t, "spoiled-index")
	s := e.serve(t, name, "--kubeconfig", e.serviceAccount(t, name), lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index")
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	eventually(t, "the index", func(ctx context.Context) (bool, error) { return e.indexed(ctx, name, 1) })
	index := func(ctx context.Context) *corev1.PodTemplate {
		template := &corev1.PodTemplate{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: backstop.TemplateName}, template); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return template
	}
	good := index(t.Context())
	for what, spoil := range map[string]func(*corev1.PodTemplate){
		"emptied": func(p *corev1.PodTemplate) {
			for i := range p.Template.Spec.Containers {
				p.Template.Spec.Containers[i].Args = nil
			}
		},
		"without its lists":          func(p *corev1.PodTemplate) { p.Template.Spec.Containers = p.Template.Spec.Containers[:1] },
		"with lists that do not fit": func(p *corev1.PodTemplate) { p.Template.Spec.Containers[1].Args = []string{"a", "b", "c"} },
		"with what cannot be read":   func(p *corev1.PodTemplate) { p.Template.Spec.Containers[0].Args = []string{"#", " @9#", "x# = @"} },
		"with one that selects all":  func(p *corev1.PodTemplate) { p.Template.Spec.Containers[0].Args = []string{"nobody#1"} },
		"with a list of somebody's": func(p *corev1.PodTemplate) {
			p.Template.Spec.Containers = append(p.Template.Spec.Containers, corev1.Container{Name: "another", Image: "none", Args: []string{"x#1"}})
		},
		"with very many":              func(p *corev1.PodTemplate) { p.Template.Spec.Containers[0].Args = manyEntries() },
		"deleted, and another's then": nil,
	} {
		template := index(t.Context())
		if spoil == nil {
			if err := e.client.Delete(t.Context(), template); err != nil {
				t.Fatal(err)
			}
		} else {
			spoil(template)
			if err := e.client.Update(t.Context(), template); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		pods := 0
		eventually(t, "the index that was "+what+" to be put right", func(ctx context.Context) (bool, error) {
			for _, labels := range []map[string]string{{"use": "true"}, nil} {
				pod := simplePod(name, "probe")
				pod.Labels = labels
				err := e.client.Create(ctx, pod, client.DryRunAll)
				switch {
				case err != nil && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+name+"'"):
					t.Errorf("%s: a refusal that does not say why: %v", what, err)
				case err == nil && labels != nil && len(pod.Spec.Containers[0].Env) != 1:
					t.Errorf("%s: a pod was not injected", what)
				}
				pods++
			}
			return equalJSON(t, index(ctx).Template, good.Template), nil
		})
	}
	if strings.Contains(s.Log(), "forbidden") {
		t.Errorf("the server lacks a right:\n%s", s.Log())
	}
	// The policy has seen the last one, too.
	eventually(t, "pods to be created as before", func(ctx context.Context) (bool, error) {
		for _, labels := range []map[string]string{{"use": "true"}, nil} {
			pod := simplePod(name, "probe")
			pod.Labels = labels
			if err := e.client.Create(ctx, pod, client.DryRunAll); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// manyEntries are objects that the index could hold, each for pods with labels of their own.
func manyEntries() []string {
	var out []string
	for i := range 200 {
		out = append(out, fmt.Sprintf("object-%d#1 =key-%d|a|b|c !other-%d|d", i, i, i))
	}
	return out
}

// testWithdrawnRights takes all rights away from a server that runs, and gives them back.
func testWithdrawnRights(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "withdrawn-rights")
	e.serviceAccount(t, name)
	// Who has a watch keeps it: only a new one is refused.
	link := newLink(t, e.config.Host)
	config := rest.CopyConfig(e.config)
	config.Host = link.url
	config.Impersonate.UserName = "system:serviceaccount:" + name + ":sallyport"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + name, "system:authenticated"}
	s := e.serve(t, name, "--kubeconfig", sallyporttest.Kubeconfig(t, config))
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	binding := &rbacv1.ClusterRoleBinding{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, binding); err != nil {
		t.Fatal(err)
	}
	stop := e.steadily(t, name)
	if err := e.client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	link.cut()
	link.mend()
	eventually(t, "the log to say what is forbidden", func(context.Context) (bool, error) {
		return strings.Contains(s.Log(), "poddefaults.kubeflow.org is forbidden"), nil
	})
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("the server is not ready any more (%v)", err)
	}
	out, err := e.doctor(t, name, "--service-account", name+"/sallyport")
	if err == nil || !strings.Contains(out, "fix   rights ") || !strings.Contains(out, "poddefaults") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	again := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: binding.RoleRef, Subjects: binding.Subjects}
	e.create(t, again)
	later := envPodDefault(name, "later")
	later.Spec.Selector.MatchLabels = map[string]string{"later": "true"}
	pod := simplePod(name, "probe")
	pod.Labels = map[string]string{"later": "true"}
	e.createSoon(t, later, pod, meta.Mark("later"))
	stop()
}

// testWithdrawnDefinition deletes the CustomResourceDefinition of PodDefaults, and with it all
// of them, and installs it again, while a server runs.
func testWithdrawnDefinition(t *testing.T, e *env) {
	name := e.namespace(t, "withdrawn-definition")
	s := e.serve(t, name)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	e.kubectl(t, "", "delete", "crd", "poddefaults.kubeflow.org", "--wait")
	eventually(t, "pods to be created without PodDefaults, of which there are none", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "probe")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		if err != nil {
			t.Errorf("a pod that nothing selects is refused: %v", err)
		}
		return len(pod.Spec.Containers[0].Env) == 0, err
	})
	eventually(t, "the log to say what is not there", func(context.Context) (bool, error) {
		return strings.Contains(s.Log(), "poddefaults") && strings.Contains(s.Log(), "could not find the requested resource"), nil
	})
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("the server is not ready any more (%v)", err)
	}
	definitions, err := exec.CommandContext(t.Context(), e.binary, "manifests", "--part", "crd").Output()
	if err != nil {
		t.Fatal(err)
	}
	e.kubectl(t, string(definitions), "apply", "--server-side", "--force-conflicts", "-f", "-")
	e.kubectl(t, "", "wait", "--for=condition=Established", "crd/poddefaults.kubeflow.org")
	eventually(t, "the kind to be served again", func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, envPodDefault(name, "again"))
		return err == nil, err
	})
	eventually(t, "the PodDefault to be applied", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "probe")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return len(pod.Spec.Containers[0].Env) == 1, err
	})
}

// testTwoConfigurations has two servers keep one configuration, which they want to be
// different, and a third that injects the same pods under another name.
func testTwoConfigurations(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "two-configurations")
	first := e.serve(t, name, "--webhooks", "poddefault,servicetype")
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	e.serve(t, name+"-other", "--namespace-selector", "e2e="+name)
	stop := e.steadily(t, name)
	second := e.start(t, name, "--webhooks", "poddefault", lab.Set("registration.timeoutSeconds", "7"))
	second.awaitReady(t)
	for _, s := range []*server{first, second} {
		eventually(t, "both to say who else writes", func(context.Context) (bool, error) {
			return strings.Contains(s.Log(), "another client keeps changing it"), nil
		})
	}
	if n := first.metric(t, `sallyport_registration_conflicts_total{kind="MutatingWebhookConfiguration"}`); n == "0" {
		t.Error("the conflict is not counted")
	}
	eventually(t, "doctor to tell", func(context.Context) (bool, error) {
		out, _ := e.doctor(t, name, "--replica", first.Metrics, "--replica", second.Metrics)
		if !strings.Contains(out, " wants the webhook configurations to be different") {
			return false, fmt.Errorf("it says %s", out)
		}
		return true, nil
	})
	stop()
	second.stop(t)
	eventually(t, "the one that stays to be registered", func(ctx context.Context) (bool, error) { return e.registered(ctx, name, first.URL) })
}

// testPoorServer gives a server few file descriptors, little memory, and no disk at all, not
// even for its log.
func testPoorServer(t *testing.T, e *env) {
	name := e.namespace(t, "poor")
	script := filepath.Join(t.TempDir(), "poor")
	text := "#!/bin/sh\nulimit -n 64\nulimit -f 0\nexport GOMEMLIMIT=64MiB TMPDIR=/nowhere\ncd /proc\nexec " + e.binary + ` "$@" 2>/dev/full` + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { // it is run
		t.Fatal(err)
	}
	poor := *e
	poor.binary = script
	s := poor.serve(t, name, "--authority-secret", name+"/ca")
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	stop := e.steadily(t, name)

	var held []net.Conn
	for i := range 300 {
		address := s.URL
		if i%3 == 0 {
			address = s.Metrics
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.DialTimeout("tcp", u.Host, time.Second)
		if err != nil {
			break // there is no room in the backlog either
		}
		held = append(held, conn)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // the caller is not the one to be convinced
	large := bytes.Repeat([]byte(" "), 7<<20)
	var posting sync.WaitGroup
	for range 16 {
		posting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+poddefault.Path, bytes.NewReader(large))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/json")
			if response, err := transport.RoundTrip(request); err == nil { // otherwise it has not got through
				_ = response.Body.Close()
			}
		})
	}
	posting.Wait()
	for _, conn := range held {
		_ = conn.Close()
	}
	stop()
	s.awaitReady(t)
	later := envPodDefault(name, "later")
	later.Spec.Selector.MatchLabels = map[string]string{"later": "true"}
	pod := simplePod(name, "probe")
	pod.Labels = map[string]string{"later": "true"}
	e.createSoon(t, later, pod, meta.Mark("later"))
}

// testPartition cuts the one that leads off from the API server, which goes on calling it.
func testPartition(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "partition")
	link := newLink(t, e.config.Host)
	config := rest.CopyConfig(e.config)
	config.Host = link.url
	args := []string{"--authority-secret", name + "/ca",
		lab.Set("leaderElection", "{leaseDuration: 5s, renewDeadline: 4s, retryPeriod: 200ms}")}
	leads := e.serve(t, name, append(args, "--kubeconfig", sallyporttest.Kubeconfig(t, config))...)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	follows := e.start(t, name, args...)
	follows.awaitReady(t)
	stop := e.steadily(t, name)
	link.cut()
	eventually(t, "the other to lead, and to be registered", func(ctx context.Context) (bool, error) { return e.registered(ctx, name, follows.URL) })
	if !strings.Contains(leads.Log(), "leading=false") {
		t.Errorf("two lead at one time:\n%s", leads.Log())
	}
	eventually(t, "authors to be judged by the other", func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, envPodDefault(name, "unseen"))
		return err == nil, err
	})
	link.mend()
	eventually(t, "the one that was cut off to know what has changed", func(context.Context) (bool, error) {
		return leads.metric(t, "sallyport_poddefaults") == follows.metric(t, "sallyport_poddefaults"), nil
	})
	stop()
	if ok, err := e.registered(t.Context(), name, follows.URL); !ok || err != nil || strings.Count(leads.Log(), "leading=true") != 1 {
		t.Errorf("the one that was cut off has the configuration changed back (%v):\n%s", err, leads.Log())
	}
}

// testMetricsReaders runs a server that shows metrics to those whom the API server allows, with
// the rights that manifests prints.
func testMetricsReaders(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "metrics-readers")
	s := e.start(t, name, "--kubeconfig", e.serviceAccount(t, name, "--metrics-authentication", "Delegated"), "--metrics-authentication", "Delegated",
		"--authority-secret", name+"/sallyport-authority")
	s.Metrics = strings.Replace(s.Metrics, "http:", "https:", 1)
	strangers := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the caller is not the one to be convinced
	defer strangers.CloseIdleConnections()
	get := func(ctx context.Context, path, token string) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Metrics+path, nil)
		if err != nil {
			return 0, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := strangers.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	eventually(t, "a probe without a token to be answered", func(ctx context.Context) (bool, error) {
		code, err := get(ctx, "/readyz", "")
		return code == http.StatusOK, err
	})
	token := func(account string) string {
		t.Helper()
		request := &authenticationv1.TokenRequest{}
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: account}}
		if account != "default" {
			e.create(t, object)
		}
		if err := e.client.SubResource("token").Create(t.Context(), object, request); err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	prometheus, stranger := token("prometheus"), token("default")
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name + "-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: "prometheus"}},
	})
	for what, tc := range map[string]struct {
		path, token string
		want        int
	}{
		"liveness, of anybody":          {"/livez", "", http.StatusOK},
		"metrics, of nobody":            {"/metrics", "", http.StatusUnauthorized},
		"metrics, with no token":        {"/metrics", "nobody-knows-it", http.StatusUnauthorized},
		"metrics, without a right":      {"/metrics", stranger, http.StatusForbidden},
		"metrics, with the ClusterRole": {"/metrics", prometheus, http.StatusOK},
	} {
		eventually(t, what, func(ctx context.Context) (bool, error) {
			code, err := get(ctx, tc.path, tc.token)
			if err == nil && code != tc.want {
				err = fmt.Errorf("status %d", code)
			}
			return code == tc.want, err
		})
	}
	// Who shows no token is told so, and has nothing to fix.
	for _, address := range []string{s.Metrics, strings.Replace(s.Metrics, "https:", "http:", 1)} {
		out, _ := e.doctor(t, name, "--authority-secret", name+"/sallyport-authority", "--replica", address)
		if address != s.Metrics && !strings.Contains(out, "skip  replicas        "+address+" shows its metrics only to callers that the API server authorizes") {
			t.Errorf("doctor:\n%s", out)
		}
	}
}
