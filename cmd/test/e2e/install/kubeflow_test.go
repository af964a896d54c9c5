// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/test/lab"
)

const profile = "team"

var podDefaults = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1alpha1", Resource: "poddefaults"}

// TestTheKubeflowGuide goes the way of docs/kubeflow-migration.md, there and back, with the
// commands that stand in it. All the time pods are created in a profile, and its user lists
// PodDefaults as the notebook web app does.
func TestTheKubeflowGuide(t *testing.T) {
	t.Parallel() // most of it is waiting
	steps := guide(t, filepath.Join(top, "docs/kubeflow-migration.md"))
	command, kustomize := sallyport(t), lab.Binary(t, "kustomize")
	tools := t.TempDir()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	for name, path := range map[string]string{"kubectl": kubectl, "sallyport": command} {
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	checkout, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}

	// refused is why a pod may be on the way back, as the guide says.
	for old, refused := range map[string]string{"poddefaults-webhook": "x509: certificate signed by unknown authority", "admission-webhook": ""} {
		t.Run(old, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, map[string]func(*cluster, *testing.T, *corev1.Pod) (*container, error){
				"registry.example.com/sallyport:v1":           runSallyport(command),
				"registry.example.com/poddefaults-webhook:v1": runOldComponent,
			})
			c.issueCertificates(t)
			c.namespace(t, "kubeflow", nil)
			c.namespace(t, profile, map[string]string{"app.kubernetes.io/part-of": "kubeflow-profile"})
			c.profileUser(t)
			text, err := os.ReadFile(filepath.Join("testdata/kubeflow", old+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			certificate, key, err := selfSigned(old + "-service.kubeflow.svc")
			if err != nil {
				t.Fatal(err)
			}
			before := strings.NewReplacer("CERTIFICATE", base64.StdEncoding.EncodeToString(certificate), "KEY", base64.StdEncoding.EncodeToString(key)).Replace(string(text))
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "before.yaml"), []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			run := func(t *testing.T, script string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+script)
				cmd.Dir = folder
				cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+c.kubeconfig, "SALLYPORT="+checkout,
					"IMAGE=registry.example.com/sallyport:v1", "BEFORE="+filepath.Join(folder, "before.yaml"), "OLD="+old)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v in\n%s\n%s", err, script, out)
				}
			}
			step := func(t *testing.T, heading string) {
				t.Helper()
				script, ok := steps[heading]
				if !ok {
					t.Fatalf("the guide has no step %q; it has %q", heading, slices.Sorted(maps.Keys(steps)))
				}
				run(t, script)
			}

			run(t, `kubectl apply -f "$BEFORE"; kubectl --namespace kubeflow rollout status deployment "$OLD-deployment" --timeout 5m`)
			c.eventually(t, "the definition", func(ctx context.Context) (bool, error) {
				_, err := c.objects.Resource(podDefaults).Namespace(profile).List(ctx, metav1.ListOptions{})
				return err == nil, err
			})
			c.createPodDefaults(t)
			c.eventually(t, "Kubeflow's webhook to inject", func(ctx context.Context) (bool, error) { return true, c.injects(ctx) })
			c.eventually(t, "the user to see PodDefaults", func(ctx context.Context) (bool, error) { return true, c.listsAsTheWebApp(ctx) })
			c.isolate(t)
			kept := c.kept(t)
			installed := c.component(t)

			step(t, "Preflight")
			watch := c.watchEverything(t)
			for _, heading := range []string{"1. Build a bridge", "2. Take the component away", "3. Put Sallyport in its place", "4. Remove the bridge", "5. See that it works"} {
				step(t, heading)
			}
			watch.end(t, "")
			if diff := cmp.Diff(kept, c.kept(t)); diff != "" {
				t.Errorf("PodDefaults and what a pod had (-before +after):\n%s", diff)
			}
			c.eventually(t, "what the namespace of the bridge held to go", func(ctx context.Context) (bool, error) {
				_, err := c.client.CoreV1().Namespaces().Get(ctx, "sallyport-bridge", metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			})
			there := slices.DeleteFunc(c.component(t), func(object string) bool { return object == kubeflowsPolicy })
			if diff := cmp.Diff(c.overlay(t, kustomize), there); diff != "" {
				t.Errorf("what is there, and what the overlay and its server install (-overlay +there):\n%s", diff)
			}

			watch = c.watchEverything(t)
			step(t, "1. Build a bridge")
			step(t, "The way back")
			watch.end(t, refused)
			if err := c.injects(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(kept, c.kept(t)); diff != "" {
				t.Errorf("after the way back, PodDefaults and what a pod had (-before +after):\n%s", diff)
			}
			c.eventually(t, "what the namespace of the bridge held to go", func(ctx context.Context) (bool, error) {
				_, err := c.client.CoreV1().Namespaces().Get(ctx, "sallyport-bridge", metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			})
			if diff := cmp.Diff(installed, c.component(t)); diff != "" {
				t.Errorf("after the way back (-before +after):\n%s", diff)
			}
		})
	}
}

// guide are the scripts of a document by the heading that they stand below.
func guide(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	heading, inside := "", false
	for line := range strings.Lines(string(text)) {
		switch title, isHeading := strings.CutPrefix(line, "## "); {
		case strings.HasPrefix(line, "```"):
			inside = !inside && line == "```sh\n"
		case inside:
			out[heading] += line
		case isHeading:
			heading = strings.TrimSpace(title)
		}
	}
	return out
}

func (c *cluster) eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	lab.Eventually(t.Context(), t, patience, what, condition)
}

// selfSigned is a certificate that is its own authority, as the component's is, and its
// key, both in PEM.
func selfSigned(name string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// runOldComponent imitates Kubeflow's server, as far as it matters here: it answers without
// version and kind, lists PodDefaults for each pod, and knows of variables only.
func runOldComponent(c *cluster, t *testing.T, pod *corev1.Pod) (*container, error) {
	return c.imitate(t, pod, 4443, c.oldAnswer)
}

// imitate serves with the certificate of the pod's Secret, and answers by a func.
func (c *cluster) imitate(t *testing.T, pod *corev1.Pod, port int32, answerTo func(*http.Request) (any, error)) (*container, error) {
	secret, err := c.client.CoreV1().Secrets(pod.Namespace).Get(t.Context(), pod.Spec.Volumes[0].Secret.SecretName, metav1.GetOptions{})
	if err != nil {
		return &container{ready: func(context.Context) bool { return false }, stop: func() {}}, err
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := answerTo(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(answer) // the caller sees a failure
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	return &container{
		ports: map[int32]string{port: server.Listener.Addr().String()},
		ready: func(context.Context) bool { return true }, stop: server.Close,
	}, nil
}

func (c *cluster) oldAnswer(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var review struct {
		Request struct {
			UID       types.UID
			Namespace string
			Object    corev1.Pod
		}
	}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	list, err := c.objects.Resource(podDefaults).Namespace(review.Request.Namespace).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pod := review.Request.Object
	annotations := map[string]string{}
	maps.Copy(annotations, pod.Annotations)
	env := slices.Clone(pod.Spec.Containers[0].Env)
	for _, item := range list.Items {
		wanted, _, err := unstructured.NestedStringMap(item.Object, "spec", "selector", "matchLabels")
		if err != nil {
			return nil, err
		}
		if !labels.SelectorFromSet(wanted).Matches(labels.Set(pod.Labels)) {
			continue
		}
		annotations["poddefault.admission.kubeflow.org/poddefault-"+item.GetName()] = item.GetResourceVersion()
		list, _, _ := unstructured.NestedSlice(item.Object, "spec", "env")
		for _, entry := range list {
			name, value := entry.(map[string]any)["name"].(string), entry.(map[string]any)["value"].(string)
			if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == name }) {
				env = append(env, corev1.EnvVar{Name: name, Value: value})
			}
		}
	}
	response := map[string]any{"uid": review.Request.UID, "allowed": true}
	if len(annotations) > len(pod.Annotations) {
		patch, err := json.Marshal([]map[string]any{
			{"op": "add", "path": "/metadata/annotations", "value": annotations},
			{"op": "add", "path": "/spec/containers/0/env", "value": env},
		})
		if err != nil {
			return nil, err
		}
		response["patchType"], response["patch"] = "JSONPatch", patch
	}
	return map[string]any{"response": response}, nil
}

// issueCertificates does what cert-manager does for the component, until the test ends:
// a Secret for each Certificate, and its certificate into the configuration.
func (c *cluster) issueCertificates(t *testing.T) {
	t.Helper()
	certificates := c.objects.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}).Namespace("kubeflow")
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(300 * time.Millisecond) { // as a controller comes back to its objects
			list, err := certificates.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, item := range list.Items {
				c.issue(ctx, t, &item)
			}
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
}

func (c *cluster) issue(ctx context.Context, t *testing.T, item *unstructured.Unstructured) {
	name, _, _ := unstructured.NestedString(item.Object, "spec", "secretName")
	common, _, _ := unstructured.NestedString(item.Object, "spec", "commonName")
	secrets, configurations := c.client.CoreV1().Secrets("kubeflow"), c.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		certificate, key, err := selfSigned(common)
		if err != nil {
			t.Error(err)
			return
		}
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"tls.crt": certificate, "tls.key": key}}
		if secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return // the next time
		}
	} else if err != nil {
		return
	}
	list, err := configurations.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, configuration := range list.Items {
		if configuration.Annotations["cert-manager.io/inject-ca-from"] != "kubeflow/"+item.GetName() || bytes.Equal(configuration.Webhooks[0].ClientConfig.CABundle, secret.Data["tls.crt"]) {
			continue
		}
		configuration.Webhooks[0].ClientConfig.CABundle = secret.Data["tls.crt"]
		_, _ = configurations.Update(ctx, &configuration, metav1.UpdateOptions{}) // the next time
	}
}

// profileUser makes a user of the profile, with the role that Kubeflow gives them.
func (c *cluster) profileUser(t *testing.T) {
	t.Helper()
	_, err := c.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeflow-edit"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"rbac.authorization.kubeflow.org/aggregate-to-kubeflow-edit": "true"}},
		}},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.client.RbacV1().RoleBindings(profile).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "user"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeflow-edit"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "user@example.com"}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// createPodDefaults makes some as users have them, and a pod with one.
func (c *cluster) createPodDefaults(t *testing.T) {
	t.Helper()
	for name, spec := range map[string]map[string]any{
		"greeting": {"desc": "Say hello", "selector": map[string]any{"matchLabels": map[string]any{"greeting": "true"}}, "env": []any{map[string]any{"name": "GREETING", "value": "hello"}}},
		"quiet":    {"selector": map[string]any{"matchLabels": map[string]any{"quiet": "true"}}, "env": []any{map[string]any{"name": "QUIET", "value": "yes"}}},
	} {
		if _, err := c.objects.Resource(podDefaults).Namespace(profile).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kubeflow.org/v1alpha1", "kind": "PodDefault", "metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually(t, "a pod that was there before", func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().Pods(profile).Create(ctx, notebook("there-before"), metav1.CreateOptions{})
		return err == nil, err
	})
}

func notebook(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"greeting": "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "notebook", Image: "example.com/notebook"}}},
	}
}

// injects creates a pod, as a dry run, which both servers answer like any other.
func (c *cluster) injects(ctx context.Context) error {
	pod, err := c.client.CoreV1().Pods(profile).Create(ctx, notebook("notebook"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if want := []corev1.EnvVar{{Name: "GREETING", Value: "hello"}}; !cmp.Equal(want, pod.Spec.Containers[0].Env) {
		return fmt.Errorf("the pod has %+v", pod.Spec.Containers[0].Env)
	}
	return nil
}

// listsAsTheWebApp reads PodDefaults with the rights of the user: the label is the first
// key of matchLabels, the text is desc or else the name.
func (c *cluster) listsAsTheWebApp(ctx context.Context) error {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "user@example.com", Groups: []string{"system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	raw, err := client.RESTClient().Get().AbsPath("/apis/kubeflow.org/v1alpha1/namespaces/" + profile + "/poddefaults").DoRaw(ctx)
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				Desc     string
				Selector struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	got := map[string]string{}
	for _, item := range list.Items {
		keys := slices.Sorted(maps.Keys(item.Spec.Selector.MatchLabels))
		if len(keys) == 0 {
			return fmt.Errorf("%s has no label that a form can offer", item.Metadata.Name)
		}
		got[keys[0]] = item.Spec.Desc
		if item.Spec.Desc == "" {
			got[keys[0]] = item.Metadata.Name
		}
	}
	if want := map[string]string{"greeting": "Say hello", "quiet": "quiet"}; !maps.Equal(want, got) {
		return fmt.Errorf("a form offers %v", got)
	}
	return nil
}

// kept are the specs of PodDefaults, and what the pod that was there before has.
func (c *cluster) kept(t *testing.T) map[string]any {
	t.Helper()
	list, err := c.objects.Resource(podDefaults).Namespace(profile).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, item := range list.Items {
		spec, _ := item.Object["spec"].(map[string]any)
		for name, value := range map[string]any{"conflictPolicy": "Kubeflow", "mode": "Enforce", "priority": int64(0), "revisionHistoryLimit": int64(5)} {
			if spec[name] == value { // the default of our definition
				delete(spec, name)
			}
		}
		out[item.GetName()] = []any{item.GetUID(), spec}
	}
	pod, err := c.client.CoreV1().Pods(profile).Get(t.Context(), "there-before", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out["pod"] = []any{pod.UID, pod.Annotations, pod.Spec.Containers[0].Env}
	return out
}

// A watch creates pods and lists PodDefaults until it ends.
type watch struct {
	cancel context.CancelFunc
	group  sync.WaitGroup
	pods   int
	failed []string
	lists  []string
}

func (c *cluster) watchEverything(t *testing.T) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{cancel: cancel}
	began := time.Now()
	w.group.Go(func() {
		for ; lab.Sleep(ctx, 100*time.Millisecond); w.pods++ {
			if err := c.injects(ctx); err != nil && ctx.Err() == nil {
				w.failed = append(w.failed, fmt.Sprintf("after %s: %v", time.Since(began).Round(time.Millisecond), err))
			}
		}
	})
	w.group.Go(func() {
		for lab.Sleep(ctx, 200*time.Millisecond) {
			if err := c.listsAsTheWebApp(ctx); err != nil && ctx.Err() == nil {
				w.lists = append(w.lists, err.Error())
			}
		}
	})
	t.Cleanup(func() {
		w.cancel()
		w.group.Wait()
		if t.Failed() && len(w.failed) > 0 {
			t.Logf("%d of %d pods, for example:\n%s\n%s", len(w.failed), w.pods, w.failed[0], w.failed[len(w.failed)-1])
		}
	})
	return w
}

// end tells what went wrong. Pods may be refused for the reason that is named.
func (w *watch) end(t *testing.T, tolerated string) {
	t.Helper()
	w.cancel()
	w.group.Wait()
	w.failed = slices.DeleteFunc(w.failed, func(text string) bool { return tolerated != "" && strings.Contains(text, tolerated) })
	show := func(list []string) string { return strings.Join(slices.Compact(list[:min(5, len(list))]), "\n") }
	if w.pods < 20 || len(w.failed) > 0 {
		t.Errorf("%d of %d pods were refused or not injected:\n%s", len(w.failed), w.pods, show(w.failed))
	}
	if len(w.lists) > 0 {
		t.Errorf("the list of PodDefaults failed %d times:\n%s", len(w.lists), show(w.lists))
	}
}

// kubeflowsPolicy is what the guide leaves alone, if it was there.
const kubeflowsPolicy = "networkpolicies kubeflow/poddefaults"

// isolate has the namespace closed to all that is not in it, as Kubeflow's manifests do:
// `sallyport lint --cluster`, a step of the guide, finds it if the API server is shut out.
func (c *cluster) isolate(t *testing.T) {
	t.Helper()
	if _, err := c.client.NetworkingV1().NetworkPolicies("kubeflow").Create(t.Context(), &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default-allow-same-namespace"},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// component is what is installed in all and has to do with PodDefaults, but for what
// controllers make of it, each object with its labels.
func (c *cluster) component(t *testing.T) []string {
	t.Helper()
	u := &newUser{apiServer: c.apiServer}
	derived := regexp.MustCompile(`^(pods|replicasets|endpointslices|endpoints|controllerrevisions|poddefaults|poddefaultrevisions|clusterpoddefaultrevisions|podtemplates|leases|namespaces) `)
	ours := regexp.MustCompile(`sallyport|poddefault|admission-webhook|webhook-certs`)
	var out []string
	for _, object := range u.everything(t) {
		if ours.MatchString(object) && !derived.MatchString(object) {
			out = append(out, object)
		}
	}
	return out
}

// overlay are names of what config/kubeflow has, and of what its server makes.
func (c *cluster) overlay(t *testing.T, kustomize string) []string {
	t.Helper()
	const configuration = "poddefaults-webhook-mutating-webhook-configuration"
	out := []string{
		"secrets kubeflow/sallyport-authority", "mutatingwebhookconfigurations /" + configuration, "validatingwebhookconfigurations /" + configuration,
		"validatingadmissionpolicies /" + configuration, "validatingadmissionpolicybindings /" + configuration,
	}
	for _, object := range parse(t, output(t, kustomize, "build", filepath.Join(top, "config/kubeflow"))) {
		gvk := object.GroupVersionKind()
		mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s/%s", mapping.Resource.Resource, object.GetNamespace(), object.GetName()))
	}
	slices.Sort(out)
	return out
}
