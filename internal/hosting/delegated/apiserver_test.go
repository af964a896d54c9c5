// SPDX-License-Identifier: Apache-2.0

package delegated_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/serving"
)

// The ways in which the test's API server authenticates itself.
const (
	byCertificate = "certificate" // of a CA of the webhook's own
	byClusterCA   = "cluster-ca"  // certificate of the cluster's client CA
	byToken       = "token"
	byStranger    = "stranger" // token of a user that may not post
	byNothing     = "nothing"
	byNoReview    = "expired" // unknown token
)

// metricsPort serves the metrics of one of the servers.
const metricsPort = "metrics"

var ways = []string{byCertificate, byClusterCA, byToken, byStranger, byNothing, byNoReview}

const (
	callerToken, strangerToken = "token-of-the-caller", "token-of-a-stranger"
	secretLabel                = "hunter2"
)

// callers are the credential files of the API server.
type callers struct {
	folder string
	ports  map[string]int
}

func (c *callers) file(name string) string { return filepath.Join(c.folder, name) }

func (c *callers) write(t *testing.T, name string, contents []byte) {
	t.Helper()
	if err := os.WriteFile(c.file(name), contents, 0o600); err != nil {
		t.Fatal(err)
	}
}

// configure writes the AdmissionConfiguration, as docs/security.md describes it.
func (c *callers) configure(t *testing.T) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	users := map[string]*clientcmdapi.AuthInfo{
		byCertificate: {ClientCertificate: c.file("own.crt"), ClientKey: c.file("own.key")},
		byClusterCA:   {ClientCertificate: c.file("cluster.crt"), ClientKey: c.file("cluster.key")},
		byToken:       {Token: callerToken},
		byStranger:    {Token: strangerToken},
		byNoReview:    {Token: "nobody-knows-it"},
	}
	for way, user := range users {
		config.AuthInfos[fmt.Sprintf("127.0.0.1:%d", int32(c.ports[way]))] = user
	}
	if err := clientcmd.WriteToFile(*config, c.file("kubeconfig")); err != nil {
		t.Fatal(err)
	}
	plugin := `
- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: ` + c.file("kubeconfig")
	c.write(t, "admission.yaml", []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:"+
		fmt.Sprintf(plugin, "MutatingAdmissionWebhook")+fmt.Sprintf(plugin, "ValidatingAdmissionWebhook")+"\n"))
	c.write(t, "tokens.csv", []byte(callerToken+",caller,uid-1\n"+strangerToken+",stranger,uid-2\n"))
}

// ownCA creates a CA and a certificate for the API server.
func (c *callers) ownCA(t *testing.T) {
	t.Helper()
	var parent *x509.Certificate
	var parentKey *ecdsa.PrivateKey
	for _, name := range []string{"ca", "own"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver-" + name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: parent == nil, BasicConstraintsValid: true,
		}
		if parent == nil {
			parent, parentKey = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		c.write(t, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	}
}

// rights grants a user the review rights that manifests prints, and lets the user
// "caller" post to one path and read metrics.
func rights(t *testing.T, client kubernetes.Interface, path string) {
	t.Helper()
	server := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "server"}}
	bind := func(name, role string, subjects []rbacv1.Subject) {
		_, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook-caller"},
		Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{path}, Verbs: []string{delegated.Verb}},
			{NonResourceURLs: []string{"/metrics"}, Verbs: []string{delegated.MetricsVerb}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind("webhook-caller", "webhook-caller", []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "caller"}})
	bind("webhook-auth-delegator", "system:auth-delegator", server)
	if _, err := client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook-authentication-reader"}, Subjects: server,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// application labels ConfigMaps of one case.
func application(t *testing.T, way string, server *rest.Config) *sallyport.App {
	t.Helper()
	rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), "CREATE")
	label := admission.Mutate(func(_ context.Context, c *corev1.ConfigMap) error {
		c.Labels["called"] = secretLabel
		return nil
	})
	app, err := sallyport.New("callers-"+way,
		sallyport.WithWebhooks(admission.Mutating(way+".callers.example.com", rules, label, admission.AtPath("/label"),
			admission.WithFailurePolicy("Fail"),
			admission.WithObjectSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"case": way}}))),
		sallyport.WithAuthentication("delegated", func(sallyport.Environment) (sallyport.Authentication, error) {
			made, err := delegated.New(kubernetes.NewForConfigOrDie(server))
			if err != nil {
				return sallyport.Authentication{}, err
			}
			return sallyport.Authentication{Authenticate: made.Authenticate, Ready: made.Ready, Run: made.Run}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func run(t *testing.T, app *sallyport.App, settings sallyport.Settings) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := app.Run(ctx, settings)
		if ctx.Err() == nil {
			t.Errorf("the application ended with %v", err) // calls would be repeated without an end
		}
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the application ended with %v", err)
		}
	})
}

func TestWhoMayCallOnARealAPIServer(t *testing.T) {
	c := &callers{folder: t.TempDir(), ports: map[string]int{}}
	for _, way := range append(ways, metricsPort) {
		c.ports[way] = freeport.For(t)
	}
	c.configure(t)
	c.ownCA(t)
	var env *envtest.Environment
	config := sallyporttest.StartAPIServer(t,
		sallyporttest.WithAPIServerFlag("admission-control-config-file", c.file("admission.yaml")),
		sallyporttest.WithAPIServerFlag("token-auth-file", c.file("tokens.csv")),
		func(e *envtest.Environment) { env = e })
	user, err := env.AddUser(envtest.User{Name: "caller"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, "cluster.crt", user.Config().CertData)
	c.write(t, "cluster.key", user.Config().KeyData)
	client := kubernetes.NewForConfigOrDie(config)
	rights(t, client, "/label")
	server := rest.CopyConfig(config)
	server.Impersonate = rest.ImpersonationConfig{UserName: "server", Groups: []string{"system:authenticated"}}

	for _, way := range ways {
		app := application(t, way, server)
		settings := app.DefaultSettings()
		settings.Client, settings.Logger = config, slog.New(slog.DiscardHandler)
		settings.Serving.BindAddress, settings.Serving.SecurePort, settings.Serving.MetricsBindAddress = "127.0.0.1", int32(c.ports[way]), "0"
		settings.Serving.DrainMin, settings.Serving.DrainTimeout = 0, 0
		settings.Registration.URL = fmt.Sprintf("https://127.0.0.1:%d", int32(c.ports[way]))
		settings.Authentication.Mode = "delegated"
		if way == byToken {
			settings.Serving.MetricsBindAddress, settings.Authentication.Metrics = fmt.Sprintf("127.0.0.1:%d", c.ports[metricsPort]), "delegated"
		}
		if way == byCertificate {
			settings.Authentication.Mode = serving.AuthenticationClientCA
			settings.Authentication.ClientCAFile, settings.Authentication.ClientCommonNames = c.file("ca.crt"), []string{"kube-apiserver-own"}
		}
		run(t, app, settings)
	}

	testMetrics(t, c.ports[metricsPort])
	testRandomTokens(t, client, c.ports[metricsPort])
	for way, want := range map[string]string{
		byCertificate: "", byClusterCA: "", byToken: "",
		byStranger: "403", byNothing: "401", byNoReview: "401",
	} {
		t.Run("an API server that shows who it is by "+way, func(t *testing.T) {
			t.Parallel()
			created := create(t, client, way)
			switch {
			case want == "" && (created.err != nil || created.Labels["called"] != secretLabel):
				t.Errorf("the webhook is not called: %v, %v", created.Labels, created.err)
			case want != "" && created.err == nil:
				t.Error("an object is admitted whose webhook has refused the call")
			case want != "" && strings.Contains(created.err.Error(), secretLabel):
				t.Errorf("tells what the webhook does: %v", created.err)
			}
		})
		t.Run("a forged review from somebody without a name, "+way, func(t *testing.T) {
			t.Parallel()
			for _, tc := range []struct {
				header string
				status int
			}{{"", 401}, {"Bearer " + strangerToken, 403}, {"Bearer x", 401}} {
				if way == byCertificate {
					tc.status = 401 // a token is nothing there
				}
				code, answer := forge(t, c.ports[way], tc.header)
				if code != tc.status || strings.Contains(answer, secretLabel) || strings.Contains(answer, "stranger") || strings.Contains(answer, "uid") {
					t.Errorf("with %q: %d %s", tc.header, code, answer)
				}
			}
		})
	}
}

func testMetrics(t *testing.T, port int) {
	for name, tc := range map[string]struct {
		path, header string
		status       int
	}{
		"who may read them":            {"/metrics", "Bearer " + callerToken, 200},
		"who may not":                  {"/metrics", "Bearer " + strangerToken, 403},
		"a token that nobody knows":    {"/metrics", "Bearer x", 401},
		"nobody":                       {"/metrics", "", 401},
		"a probe of liveness":          {"/livez", "", 200},
		"a probe of readiness":         {"/readyz", "", 200},
		"another path than these have": {"/debug", "Bearer " + callerToken, 404},
	} {
		t.Run("metrics for "+name, func(t *testing.T) {
			t.Parallel()
			code, answer := ask(t, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, tc.path), tc.header, "")
			if code != tc.status || strings.Contains(answer, "sallyport_serving_") != (tc.path == "/metrics" && code == 200) {
				t.Errorf("answered with %d %.200q", code, answer)
			}
		})
	}
}

// testRandomTokens sends a new token with each call and counts the reviews by the API
// server. An authorized reader at the same address keeps reading.
func testRandomTokens(t *testing.T, client kubernetes.Interface, port int) {
	t.Helper()
	read := func(authorization string) int {
		t.Helper()
		code, _ := ask(t, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", port), authorization, "")
		return code
	}
	if code := read("Bearer " + callerToken); code != 200 {
		t.Fatalf("who may read gets %d", code)
	}
	before, began := tokenReviews(t, client), time.Now()
	const tokens = 500
	var callers sync.WaitGroup
	for caller := range 10 {
		callers.Go(func() {
			for i := range tokens / 10 {
				if code, err := try(t, port, fmt.Sprintf("Bearer random-%d-%d", caller, i)); err != nil || code != 401 && code != 503 {
					t.Errorf("a random token: %d, %v", code, err)
				}
			}
		})
	}
	reads := 0
	for ; reads < 20; reads++ {
		if code, err := try(t, port, "Bearer "+callerToken); code != 200 {
			t.Errorf("who may read gets %d (%v) beside that", code, err)
		}
	}
	callers.Wait()
	took := time.Since(began)
	asked := tokenReviews(t, client) - before
	t.Logf("%d TokenReviews for %d tokens in %s", asked, tokens, took)
	if most := 25 + int(10*took.Seconds()); asked > most || asked == 0 {
		t.Errorf("the API server was asked about %d tokens in %s, want at most %d", asked, took, most)
	}
}

// try requests the metrics once.
func try(t *testing.T, port int, authorization string) (int, error) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // the caller is not the one to be convinced
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", port), nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", authorization)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	// Two may read concurrently, and a reader that stalls is one of them.
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// tokenReviews returns how many the API server has answered.
func tokenReviews(t *testing.T, client kubernetes.Interface) int {
	t.Helper()
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="tokenreviews"`) {
			continue
		}
		fields := strings.Fields(line)
		count, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		n += int(count)
	}
	return n
}

// stored is the result of a creation.
type stored struct {
	*corev1.ConfigMap
	err error
}

// create creates objects of a case until its webhook is registered.
func create(t *testing.T, client kubernetes.Interface, way string) stored {
	t.Helper()
	for i := 0; ; i++ {
		object, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", way, i), Labels: map[string]string{"case": way}},
		}, metav1.CreateOptions{})
		if err != nil || object.Labels["called"] != "" {
			return stored{object, err}
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the webhook is never registered")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// forge posts a review like a pod of the cluster could, once the server answers.
func forge(t *testing.T, port int, authorization string) (code int, answer string) {
	t.Helper()
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"uid-of-the-review",
		"kind":{"version":"v1","kind":"ConfigMap"},"operation":"CREATE","object":{"metadata":{"name":"n","labels":{"a":"b"}}}}}`
	return ask(t, http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/label", port), authorization, review)
}

// ask sends a request, once the server answers.
func ask(t *testing.T, method, url, authorization, body string) (code int, answer string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		// These tests do not verify the server.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // see above
	}}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		response, err := client.Do(request)
		if err != nil && t.Context().Err() == nil {
			time.Sleep(20 * time.Millisecond) // it does not listen yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusServiceUnavailable { // not ready yet
			time.Sleep(20 * time.Millisecond)
			continue
		}
		return response.StatusCode, string(body)
	}
}
