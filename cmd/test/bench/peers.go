// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Cases of the stages with peers.
const (
	peersNotebook  = "peers-notebook"
	peersVariables = "peers-variables"
)

const (
	gatekeeperName = "gatekeeper"
	kyvernoName    = "kyverno"
	istioName      = "istio"
	istioNamespace = "istio-system"
)

// A peer is the server of another project, built from its module and set up as the manifest
// in the module says: with its namespace, definitions and ConfigMaps, and with the arguments
// and variables of its Deployment. Its name is that of a module below test/peers.
type peer struct {
	module, command string // the packages of the module and of the server
	namespace       string
	deployment      string
	path            string // where it serves reviews
	policies        []byte // YAML, what it injects; nil if it knows that itself
	// manifest returns the file with what is to be installed, given the folder of the module.
	manifest func(ctx context.Context, s *site, folder string) (string, error)
	// arguments come after those of the Deployment, for a server outside of a cluster. A second
	// port is for its health. More are added to each of the flags in ports.
	arguments func(s *site, port, health string) []string
	ports     []string
	ready     func(port, health string) string // URL of its readiness probe
	// policiesKind is the kind of its policies if it applies only those whose status says Ready,
	// which may come after its own readiness; zero if it does not.
	policiesKind schema.GroupVersionKind
	// verify checks an answer; nil for the injection that the case tells.
	verify func(answer []byte, r review) error
	// compare is how the pod is compared that it makes; nil for exactly.
	compare cmp.Options
}

//go:embed testdata/gatekeeper.yaml
var gatekeeperYAML []byte

//go:embed testdata/kyverno.yaml
var kyvernoYAML []byte

var peers = map[string]peer{
	gatekeeperName: {
		module: "github.com/open-policy-agent/gatekeeper/v3", command: "github.com/open-policy-agent/gatekeeper/v3",
		namespace: "gatekeeper-system", deployment: "gatekeeper-controller-manager",
		path: "/v1/mutate", policies: gatekeeperYAML,
		manifest: in("deploy/gatekeeper.yaml"),
		arguments: func(s *site, port, health string) []string {
			return []string{
				"--debug-use-fake-pod", "--host=127.0.0.1", "--port=" + port, "--health-addr=127.0.0.1:" + health,
				"--cert-dir=" + s.dir, "--disable-cert-rotation",
			}
		},
		ports: []string{"--prometheus-port="},
		ready: func(_, health string) string { return "http://127.0.0.1:" + health + "/readyz" },
	},
	kyvernoName: {
		module: "github.com/kyverno/kyverno", command: "github.com/kyverno/kyverno/cmd/kyverno",
		namespace: "kyverno", deployment: "kyverno-admission-controller",
		path: "/mutate/fail", policies: kyvernoYAML,
		manifest: in("config/install-latest-testing.yaml"),
		arguments: func(_ *site, port, _ string) []string {
			return []string{
				"--serverIP=127.0.0.1:" + port, "--webhookServerHost=127.0.0.1", "--webhookServerPort=" + port,
				"--disableCertManagerController", "--caSecretName=" + certificateSecret, "--tlsSecretName=" + certificateSecret,
				"--controllerRuntimeMetricsAddress=0",
			}
		},
		ports:        []string{"--metricsPort="},
		ready:        func(port, _ string) string { return "https://127.0.0.1:" + port + "/health/readiness" },
		policiesKind: schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicyList"},
		// It puts what it adds before what is there.
		compare: cmp.Options{cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })},
	},
	istioName: {
		module: "istio.io/istio", command: "istio.io/istio/pilot/cmd/pilot-discovery",
		namespace: istioNamespace, deployment: "istiod",
		path:     "/inject",
		manifest: istioManifest,
		arguments: func(s *site, port, health string) []string {
			return []string{
				"--httpsAddr=127.0.0.1:" + port, "--httpAddr=127.0.0.1:" + health,
				"--tlsCertFile=" + filepath.Join(s.dir, certFile), "--tlsKeyFile=" + filepath.Join(s.dir, keyFile),
				"--caCertFile=" + s.cp.CAFile, // for other ports; istiod refuses the same file twice
			}
		},
		ports:  []string{"--grpcAddr=127.0.0.1:", "--secureGRPCAddr=127.0.0.1:", "--monitoringAddr=127.0.0.1:", "--ctrlz_port="},
		ready:  func(_, health string) string { return "http://127.0.0.1:" + health + "/ready" },
		verify: verifySidecar,
	},
}

// in is the manifest that a module has.
func in(file string) func(context.Context, *site, string) (string, error) {
	return func(_ context.Context, _ *site, folder string) (string, error) {
		return filepath.Join(folder, file), nil
	}
}

// istioManifest is what helm makes of the charts in Istio's module.
func istioManifest(ctx context.Context, s *site, folder string) (string, error) {
	charts := filepath.Join(folder, "manifests", "charts")
	definitions, err := os.ReadFile(filepath.Join(charts, "base", "files", "crd-all.gen.yaml"))
	if err != nil {
		return "", err
	}
	out, err := goCommand(ctx, "tools/deploy", "tool", "helm", "template", "istiod", filepath.Join(charts, "istio-control", "istio-discovery"), "--namespace", istioNamespace)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "istio.yaml")
	return file, os.WriteFile(file, slices.Concat(definitions, []byte("\n---\n"), out), 0o600)
}

// An installedPeer is one that can be started.
type installedPeer struct {
	peer
	version   string
	binary    string
	container corev1.Container // of its Deployment
}

// peerStages compare with peers: the same injection, with nothing else to do and with many
// policies that select other pods.
func peerStages(p schedule, few int, injected string) []stage {
	with := func(id, policies, name, review string) benchCase {
		return benchCase{id: id, name: name + ", " + policies, review: review, path: podDefaultPath, adds: []string{injected}}
	}
	stages := []stage{{
		part:        partPeers,
		podDefaults: few,
		servers:     []string{floorName, sallyportName, gatekeeperName, kyvernoName, istioName},
		prepare:     preparePeers(1),
		cases: []benchCase{
			with(peersNotebook, "1 policy", "notebook pod", "notebook-selecting"),
			with(peersVariables, "1 policy", "notebook pod with 1,000 more variables", "selecting pod with 1,000 variables"),
		},
	}}
	for _, n := range p.Peers {
		stages = append(stages, stage{
			part:        partPeers,
			podDefaults: n,
			servers:     []string{floorName, sallyportName, gatekeeperName, kyvernoName},
			prepare:     preparePeers(n),
			cases:       []benchCase{with(fmt.Sprintf("%s-%d", peersNotebook, n), thousands(n)+" policies", "notebook pod", "notebook-selecting")},
		})
	}
	return stages
}

// preparePeers installs the peers, and has n policies for each: ClusterPolicies, or as many
// mutators, but all that one injection takes.
func preparePeers(n int) func(context.Context, *site, schedule, progress) error {
	return func(ctx context.Context, s *site, _ schedule, progress progress) error {
		for _, name := range []string{gatekeeperName, kyvernoName, istioName} {
			if _, is := s.peers[name]; !is {
				progress.sayf("building %s, which takes minutes the first time, and installing it", name)
				if err := s.installPeer(ctx, name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		// The API server would ask servers that have ended.
		api := s.cp.clients.AdmissionregistrationV1()
		err := errors.Join(api.MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			api.ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		if err != nil {
			return err
		}
		progress.sayf("creating policies for each peer, up to %s", thousands(n))
		for name, peer := range s.peers {
			policies, err := manyPolicies(name, peer.policies, n)
			if err != nil {
				return err
			}
			if err := s.createAll(ctx, policies); err != nil {
				return err
			}
		}
		return nil
	}
}

// manyPolicies are the policies in a manifest, and copies under names and labels of their own
// until there are n.
func manyPolicies(name string, text []byte, n int) ([]*manifest.Object, error) {
	var all []*manifest.Object
	for i := 0; text != nil && len(all) < n; i++ {
		copied := string(text)
		if i > 0 {
			copied = strings.ReplaceAll(copied, "gcp", fmt.Sprintf("gcp-%04d", i))
		}
		objects, _, err := manifest.Parse(name+".yaml", []byte(copied))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// createAll creates objects, unless they are there.
func (s *site) createAll(ctx context.Context, objects []*manifest.Object) error {
	for _, o := range objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(o.Raw); err != nil {
			return err
		}
		if err := s.cp.objects.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s: %w", o.Title(), err)
		}
	}
	return nil
}

// certificateSecret has the certificate that all servers serve, for a peer that reads its own
// from the API server.
const certificateSecret = "bench-certificate"

func (s *site) installPeer(ctx context.Context, name string) error {
	p := installedPeer{peer: peers[name]}
	var err error
	if p.binary, err = filepath.Abs(filepath.Join("bin", "peers", name)); err != nil {
		return err
	}
	module := filepath.Join("test", "peers", name)
	if _, err := goCommand(ctx, module, "build", "-o", p.binary, p.command); err != nil {
		return err
	}
	listed, err := goCommand(ctx, module, "list", "-m", "-json", p.module)
	if err != nil {
		return err
	}
	var source struct{ Dir, Version string }
	if err := json.Unmarshal(listed, &source); err != nil {
		return err
	}
	p.version = source.Version
	file, err := p.manifest(ctx, s, source.Dir)
	if err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(s.cp.config, envtest.CRDInstallOptions{Paths: []string{file}, MaxTime: 2 * time.Minute}); err != nil {
		return fmt.Errorf("installing the definitions: %w", err)
	}
	objects, err := manifest.ReadPath(file, nil)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	if _, err := s.cp.clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	var settings []*manifest.Object
	for _, o := range objects {
		switch {
		case o.Kind == "ConfigMap":
			settings = append(settings, o)
		case o.Kind == "Deployment" && o.Name == p.deployment:
			var deployment appsv1.Deployment
			if err := o.Decode(&deployment); err != nil {
				return err
			}
			p.container = deployment.Spec.Template.Spec.Containers[0]
		}
	}
	if p.container.Name == "" {
		return fmt.Errorf("%s has no Deployment %s", file, p.deployment)
	}
	if err := errors.Join(s.createAll(ctx, settings), s.createCertificate(ctx, p.namespace)); err != nil {
		return err
	}
	s.peers[name] = p
	return nil
}

func (s *site) createCertificate(ctx context.Context, namespace string) error {
	key, err := os.ReadFile(filepath.Join(s.dir, keyFile))
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certificateSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: s.certificate, corev1.TLSPrivateKeyKey: key},
	}
	_, err = s.cp.clients.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// start is the command line of a peer, and the URL of its readiness probe.
func (p installedPeer) start(s *site, port int) (argv []string, ready string, err error) {
	health, err := freeport.Get()
	if err != nil {
		return nil, "", err
	}
	at, healthAt := strconv.Itoa(port), strconv.Itoa(health)
	argv = slices.Concat([]string{"env"}, p.variables(), []string{p.binary}, p.container.Args, []string{"--kubeconfig=" + s.cp.Kubeconfig}, p.arguments(s, at, healthAt))
	for _, flag := range p.ports {
		port, err := freeport.Get()
		if err != nil {
			return nil, "", err
		}
		argv = append(argv, flag+strconv.Itoa(port))
	}
	return argv, p.ready(at, healthAt), nil
}

// awaitPolicies waits until the peer says of each of its policies that it is ready.
func (p *peer) awaitPolicies(ctx context.Context, s *site) error {
	if p.policiesKind.Empty() {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.policiesKind)
	return wait.PollUntilContextTimeout(ctx, time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := s.cp.objects.List(ctx, list); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(policy unstructured.Unstructured) bool { return !ready(policy) }), nil
	})
}

// ready reports whether the condition Ready of an object is true.
func ready(object unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// variables are those of the Deployment, as far as they are known without a pod.
func (p installedPeer) variables() []string {
	var out []string
	for _, v := range p.container.Env {
		value := v.Value
		if v.ValueFrom != nil {
			field := v.ValueFrom.FieldRef
			switch {
			case field != nil && field.FieldPath == "metadata.namespace":
				value = p.namespace
			case field != nil && field.FieldPath == "metadata.name":
				value = p.deployment + "-0"
			default:
				continue
			}
		}
		out = append(out, v.Name+"="+value)
	}
	return out
}

// adapt is the case as a peer is asked: where it serves, and without a mark of a PodDefault.
func (p peer) adapt(c benchCase) benchCase {
	c.path, c.bare = p.path, true
	return c
}

// verifySidecar checks that the pod gets Istio's sidecar, which is more than what the other
// servers inject.
func verifySidecar(answer []byte, r review) error {
	patched, err := applyAnswer(answer, r)
	if err != nil {
		return err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(patched, &pod); err != nil {
		return err
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == "istio-proxy" {
			return nil
		}
	}
	return errors.New("the pod gets no container istio-proxy")
}
