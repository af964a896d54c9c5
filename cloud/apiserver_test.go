// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/fake"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	genericcontrollermanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// cluster is an API server that authenticates itself at the ports of some managers and
// reads the static manifests of another.
type cluster struct {
	t      *testing.T
	config *rest.Config
	client *kubernetes.Clientset
}

// testVolume returns a minimal volume with a source.
func testVolume(name string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
			PersistentVolumeSource: source,
		},
	}
}

func gce(id string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: id}}
}

func aws(id string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
}

func cinder(id string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: id}}
}

func vsphere(id string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: id}}
}

func (c *cluster) create(name string, source corev1.PersistentVolumeSource, dryRun bool) (*corev1.PersistentVolume, error) {
	options := metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return c.client.CoreV1().PersistentVolumes().Create(c.t.Context(), testVolume(name, source), options)
}

// eventually waits until a volume created in a dry run is as expected.
func (c *cluster) eventually(what string, source corev1.PersistentVolumeSource, good func(*corev1.PersistentVolume, error) bool) {
	c.t.Helper()
	deadline := time.After(2 * time.Minute)
	for i := 0; ; i++ {
		pv, err := c.create(fmt.Sprint("probe-", i), source, true)
		if good(pv, err) {
			return
		}
		select {
		case <-deadline:
			c.t.Fatalf("waited in vain for %s; last: %v, %v", what, pv, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// labelled reports whether a volume matches zoneOf.
func labelled(pv *corev1.PersistentVolume, err error) bool {
	return err == nil && pv.Labels[corev1.LabelTopologyZone] == "zone-a" && pv.Spec.NodeAffinity != nil &&
		len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) == 1 && len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions) == 2
}

func plain(pv *corev1.PersistentVolume, err error) bool {
	return err == nil && len(pv.Labels) == 0 && pv.Spec.NodeAffinity == nil
}

// controllers report that they have started.
type testControllers struct{ started chan struct{} }

func (c *testControllers) constructor() app.ControllerInitFuncConstructor {
	return app.ControllerInitFuncConstructor{
		InitContext: app.ControllerInitContext{ClientName: "test"},
		Constructor: func(app.ControllerInitContext, *config.CompletedConfig, cloudprovider.Interface) app.InitFunc {
			return func(context.Context, genericcontrollermanager.ControllerContext) (controller.Interface, bool, error) {
				close(c.started)
				return nil, true, nil
			}
		},
	}
}

// built runs a cloud controller manager built by app's builder, with a controller, as
// the KEP requires.
func (c *cluster) built(t *testing.T, r *Registry, initialize app.InitCloudFunc, port int, flags ...string) *manager {
	t.Helper()
	return c.builtBy(t, app.NewBuilder(), r, initialize, port, flags...)
}

// builtBy does so with a builder that may have webhooks of its own.
func (c *cluster) builtBy(t *testing.T, builder *app.CommandBuilder, r *Registry, initialize app.InitCloudFunc, port int, flags ...string) *manager {
	t.Helper()
	m := &manager{t: t, port: port, stop: make(chan struct{}), ended: make(chan error, 1)}
	controllers := &testControllers{make(chan struct{})}
	builder.RegisterController("test", controllers.constructor(), nil)
	command, err := r.Build(builder, nil, initialize, cliflag.NamedFlagSets{}, m.stop)
	if err != nil {
		t.Fatal(err)
	}
	command.SetArgs(append([]string{
		"--kubeconfig=" + sallyporttest.Kubeconfig(t, c.config), "--cloud-provider=test", "--leader-elect=false", "--secure-port=0", "--webhooks=*",
		fmt.Sprint("--webhook-secure-port=", port), "--webhook-drain-min=0s", "--webhook-drain-timeout=0s",
	}, flags...))
	go func() { m.ended <- command.Execute() }()
	t.Cleanup(func() {
		_ = m.end()
		configz.Delete(app.ConfigzName) // which is the process's
	})
	select {
	case <-controllers.started:
	case err := <-m.ended:
		close(m.stop)
		t.Fatalf("the cloud controller manager has ended: %v", err)
	}
	return m
}

func TestOnARealAPIServer(t *testing.T) {
	// The webhook manager next to the API server starts first and waits for nothing.
	folder, manifests := t.TempDir(), t.TempDir()
	start(t, registry(t, PersistentVolumeLabel("vsphere")), labelling(zoneOf),
		"--webhook-registration=Manifest", "--webhook-static-manifests-dir="+manifests)
	authorityOf(t, manifests)
	if err := os.MkdirAll(filepath.Join(manifests, "validating"), 0o700); err != nil {
		t.Fatal(err)
	}

	clients := newCA(t)
	known, unknown := freeport.For(t), freeport.For(t)
	users := clientcmdapi.NewConfig()
	certFile, keyFile := clients.files(clients.issue("kube-apiserver"))
	identity := &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile}
	users.AuthInfos[fmt.Sprintf("127.0.0.1:%d", known)] = identity
	users.AuthInfos["cloud-webhooks"] = identity // a name that means nothing to kube-apiserver
	kubeconfig, admissionFile := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "admission.yaml")
	if err := clientcmd.WriteToFile(*users, kubeconfig); err != nil {
		t.Fatal(err)
	}
	gates, static := lab.StaticManifests(t)
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for plugin, dir := range map[string]string{"MutatingAdmissionWebhook": "mutating", "ValidatingAdmissionWebhook": "validating"} {
		text += fmt.Sprintf(`- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %s
`, plugin, kubeconfig)
		if static {
			text += "    staticManifestsDir: " + filepath.Join(manifests, dir) + "\n"
		}
	}
	if err := os.WriteFile(admissionFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, config: sallyporttest.StartAPIServer(t,
		sallyporttest.WithAPIServerFlag("admission-control-config-file", admissionFile), sallyporttest.WithAPIServerFlag("feature-gates", gates))}
	c.client = kubernetes.NewForConfigOrDie(c.config)
	real := []string{"--kubeconfig=" + sallyporttest.Kubeconfig(t, c.config), "--webhook-registration=API"}

	t.Run("webhooks of static manifests are called from the first request on", func(t *testing.T) {
		if pv, err := c.create("static", vsphere("a"), false); labelled(pv, err) != static {
			t.Errorf("%+v %v; the API server reads such manifests: %v", pv, err, static)
		}
	})
	t.Run("a builder's cloud controller manager labels volumes of its own source", func(t *testing.T) { testBuilder(t, c) })
	t.Run("webhooks of the builder are served", func(t *testing.T) { testBuilderWebhooks(t, c) })
	t.Run("a manager that registers nothing answers whom the API server knows", func(t *testing.T) { testDelegated(t, c) })
	t.Run("500 volumes at once are one call to the cloud each", func(t *testing.T) { testManyVolumes(t, c) })
	t.Run("volumes that were missed get their labels, by an update or by the controller", func(t *testing.T) { testMissed(t, c) })
	t.Run("with the gate off controllers run, and no port is open", func(t *testing.T) {
		port := freeport.For(t)
		c.built(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), port, gateOff)
		if isOpen(port) {
			t.Error("the port is open")
		}
	})
	t.Run("without a webhook that is enabled no port is open", func(t *testing.T) {
		port := freeport.For(t)
		c.built(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), port, gate, "--webhooks=-pvl")
		if isOpen(port) {
			t.Error("the port is open")
		}
	})
	t.Run("an API server that shows who it is may call", func(t *testing.T) {
		launchAt(t, known, registry(t, PersistentVolumeLabel("aws")), labelling(zoneOf), append(real, "--webhook-configuration-name=known", "--webhook-authority-secret=none",
			"--webhook-authentication=ClientCA", "--webhook-client-ca-file="+file(t, "ca.crt", clients.pem()), "--webhook-client-common-names=kube-apiserver")...)
		c.eventually("a volume with labels", aws("a"), labelled)
	})
	t.Run("a kubeconfig with a wrong name makes the API server nobody", func(t *testing.T) {
		launchAt(t, unknown, registry(t, PersistentVolumeLabel("openstack")), labelling(zoneOf), append(real, "--webhook-configuration-name=unknown", "--webhook-authority-secret=none",
			"--webhook-failure-policy=Fail", "--webhook-authentication=ClientCA", "--webhook-client-ca-file="+file(t, "ca.crt", clients.pem()))...)
		c.eventually("a refusal that names the webhook", cinder("a"), func(_ *corev1.PersistentVolume, err error) bool {
			return err != nil && strings.Contains(err.Error(), "failed calling webhook") && strings.Contains(err.Error(), "persistentvolumelabel")
		})
	})
	// Last: upstream leaves a goroutine that reads what the next start would set.
	t.Run("a webhook that fails to start ends the controllers", func(t *testing.T) {
		command, err := registry(t, PersistentVolumeLabel("gce")).Build(app.NewBuilder(), nil,
			func(*config.CompletedConfig) cloudprovider.Interface { return &withoutLabels{} }, cliflag.NamedFlagSets{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		command.SetArgs([]string{"--kubeconfig=" + sallyporttest.Kubeconfig(t, c.config), "--cloud-provider=test", "--secure-port=0", "--webhooks=*", gate,
			fmt.Sprint("--webhook-secure-port=", freeport.For(t))})
		command.SilenceErrors, command.SilenceUsage = true, true
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "does not implement PV labeling") {
			t.Errorf("%v", err)
		}
	})
}

// testBuilderWebhooks has the gate of the KEP, which upstream does not know.
func testBuilderWebhooks(t *testing.T, c *cluster) {
	builder := app.NewBuilder()
	builder.RegisterWebhook("greeter", app.WebhookConfig{Path: "/greet", AdmissionHandler: func(req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		if strings.Contains(string(req.Object.Raw), "broken") {
			return nil, errors.New("broken")
		}
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"hello " + string(req.Operation)}}, nil
	}})
	builder.RegisterWebhook("unused", app.WebhookConfig{Path: "/unused"})
	m := c.builtBy(t, builder, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), freeport.For(t), "--feature-gates=CloudWebhookServer=true", "--webhooks=-unused")
	m.awaitReady()
	status, resp, body := m.review("/greet", "?timeout=5s", nil, gceVolume("a"))
	if status != http.StatusOK || resp == nil || resp.UID != "u" || !slices.Equal(resp.Warnings, []string{"hello CREATE"}) {
		t.Errorf("the builder's webhook answers %d %s", status, body)
	}
	if status, _, body := m.review("/greet", "", nil, gceVolume("broken")); status != http.StatusInternalServerError {
		t.Errorf("a fault is answered with %d %s", status, body)
	}
	if status, _, body := m.review("/unused", "", nil, gceVolume("a")); status != http.StatusNotFound {
		t.Errorf("a webhook that is not enabled answers %d %s", status, body)
	}
	if status, resp, body := m.review(pvlPath, "", nil, gceVolume("a")); status != http.StatusOK || !strings.Contains(string(resp.Patch), "zone-a") {
		t.Errorf("the registry's webhook answers %d %s", status, body)
	}
	for _, want := range []string{`code="200",webhook="greeter"} 1`, `code="500",webhook="greeter"} 1`} {
		if got := processMetrics(t); !strings.Contains(got, "cloud_provider_webhook_request_total{"+want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

// processMetrics are upstream's metrics of webhooks, as the cloud controller manager exposes them.
func processMetrics(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	legacyregistry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var out strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "cloud_provider_webhook_request_") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func testBuilder(t *testing.T, c *cluster) {
	label := func(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
		if pv.Spec.GCEPersistentDisk.PDName == "gone" { // panics for volumes of others
			return nil, errors.New("there is no disk gone")
		}
		return zoneOf(ctx, pv)
	}
	m := c.built(t, registry(t, PersistentVolumeLabel("gce")), labelling(label), freeport.For(t), gate)
	c.eventually("a volume with labels", gce("a"), labelled)
	if pv, err := c.create("foreign", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}, true); !plain(pv, err) {
		t.Errorf("a volume of another source: %+v %v", pv, err)
	}
	// A decision is final, although the policy is Ignore.
	if _, err := c.create("gone", gce("gone"), true); err == nil ||
		!strings.Contains(err.Error(), `denied the request: persistentvolumes "gone" is forbidden: error querying GCE PD volume gone: there is no disk gone`) {
		t.Errorf("a disk that is gone: %v", err)
	}
	secret, err := c.client.CoreV1().Secrets(metav1.NamespaceSystem).Get(t.Context(), "cloud-controller-manager-webhook-authority", metav1.GetOptions{})
	if err != nil || len(secret.Data) == 0 {
		t.Errorf("the authority that replicas share: %v", err)
	}
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	// Its configuration still exists and blocks nothing.
	if pv, err := c.create("later", gce("a"), true); !plain(pv, err) {
		t.Errorf("with the server away: %+v %v", pv, err)
	}
}

// testMissed creates volumes while no server answers.
func testMissed(t *testing.T, c *cluster) {
	label := func(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
		if pv.Spec.AzureDisk.DiskName == "gone" {
			return nil, errors.New("there is no disk gone")
		}
		return zoneOf(ctx, pv)
	}
	azure := func(name string) *corev1.PersistentVolume {
		return testVolume("missed-"+name, corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: name, DataDiskURI: "https://blob.example.com/" + name}})
	}
	volumes := c.client.CoreV1().PersistentVolumes()
	placed := azure("placed")
	placed.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpExists}},
	}}}}
	for _, pv := range []*corev1.PersistentVolume{azure("a"), azure("b"), azure("gone"), placed} {
		if _, err := volumes.Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) *corev1.PersistentVolume {
		t.Helper()
		pv, err := volumes.Get(t.Context(), "missed-"+name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pv
	}
	event := func(reason, name string) {
		t.Helper()
		lab.Eventually(t.Context(), t, 2*time.Minute, "the event "+reason+" of "+name, func(ctx context.Context) (bool, error) {
			list, err := c.client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=missed-" + name + ",reason=" + reason})
			return err == nil && len(list.Items) > 0, err
		})
	}
	start := func(mode string) *manager {
		t.Helper()
		return c.built(t, registry(t, PersistentVolumeLabel("azure")), labelling(label), freeport.For(t), gate, "--webhook-configuration-name=missed",
			"--persistentvolumelabel-controller="+mode, "--controllers=test,persistentvolumelabel-controller")
	}

	dry := start("dry-run")
	for _, name := range []string{"a", "b", "placed"} {
		event("WouldBeLabelled", name)
		if pv := get(name); len(pv.Labels) > 0 {
			t.Errorf("a dry run has labelled %s: %v", name, pv.Labels)
		}
	}
	// The webhook handles updates, whatever the controller does.
	lab.Eventually(t.Context(), t, 2*time.Minute, "an update to label the volume", func(ctx context.Context) (bool, error) {
		pv, err := volumes.Patch(ctx, "missed-a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"`+time.Now().String()+`"}}}`), metav1.PatchOptions{})
		return labelled(pv, err), err
	})
	if pv, err := volumes.Patch(t.Context(), "missed-gone", types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{}); err != nil || len(pv.Labels) > 0 {
		t.Errorf("an update of a volume that the cloud does not know: %v, %v", pv, err)
	}
	if err := dry.end(); err != nil {
		t.Fatal(err)
	}
	configz.Delete(app.ConfigzName)

	start("on")
	event("Labelled", "b")
	event("Labelled", "placed")
	event("LabelsUnknown", "gone")
	if pv := get("b"); !labelled(pv, nil) {
		t.Errorf("%v %+v", pv.Labels, pv.Spec.NodeAffinity)
	}
	if pv := get("placed"); pv.Labels[corev1.LabelTopologyZone] != "zone-a" || !reflect.DeepEqual(pv.Spec.NodeAffinity, placed.Spec.NodeAffinity) {
		t.Errorf("a volume with a node affinity of its own: %v %+v", pv.Labels, pv.Spec.NodeAffinity)
	}
	// A volume being deleted waits for no cloud.
	if err := volumes.Delete(t.Context(), "missed-gone", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testManyVolumes creates 500 volumes at once. A webhook that is not called, or does
// not answer, would refuse them.
func testManyVolumes(t *testing.T, c *cluster) {
	var mu sync.Mutex
	calls := map[string]int{}
	initialize := func(*config.CompletedConfig) cloudprovider.Interface {
		return &testCloud{Cloud: &fake.Cloud{}, label: func(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
			mu.Lock()
			calls[pv.Spec.GCEPersistentDisk.PDName]++
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			return zoneOf(ctx, pv)
		}}
	}
	c.built(t, registry(t, PersistentVolumeLabel("gce")), initialize, freeport.For(t), gate, "--webhook-failure-policy=Fail", "--webhook-timeout=30")
	c.eventually("a volume with labels", gce("warm"), labelled)
	var group sync.WaitGroup
	for i := range 500 {
		group.Go(func() {
			name := fmt.Sprint("many-", i)
			if pv, err := c.create(name, gce(name), false); !labelled(pv, err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	group.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(calls) != 501 {
		t.Errorf("the cloud was asked about %d volumes", len(calls))
	}
	for name, n := range calls {
		if n != 1 {
			t.Errorf("%d calls for %s", n, name)
		}
	}
}
