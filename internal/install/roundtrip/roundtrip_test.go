// SPDX-License-Identifier: Apache-2.0

package roundtrip_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/application"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/test/lab"
)

var boxes = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "boxes"}

// converters lose comments of parts on the way to v1alpha1, which cannot have names with a dot.
func converters() []conversion.Converter {
	return []conversion.Converter{conversion.Unstructured(schema.GroupKind{Group: boxes.Group, Kind: "Box"}, []string{"v1", "v1alpha1"},
		func(_ context.Context, object *unstructured.Unstructured, version string) error {
			if strings.Contains(object.GetName(), ".") {
				return errors.New("metadata.name: has a dot")
			}
			if version == "v1alpha1" {
				parts, _, err := unstructured.NestedSlice(object.Object, "spec", "parts")
				if err != nil || parts == nil {
					return err
				}
				for _, part := range parts {
					delete(part.(map[string]any), "comment")
				}
				return unstructured.SetNestedSlice(object.Object, parts, "spec", "parts")
			}
			return nil
		}).WithPlural(boxes.Resource)}
}

func box(version, name, spec string) string {
	return fmt.Sprintf("apiVersion: shop.example.com/%s\nkind: Box\nmetadata: {namespace: default, name: %s}\nspec: %s\n", version, name, spec)
}

// convert runs the command.
func convert(t *testing.T, stdin string, args ...string) (out, notes string, err error) {
	t.Helper()
	cmd := application.Convert("shop", clusterflags.Flags{UserAgent: "shop/1"}, converters())
	var printed, noted bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&printed)
	cmd.SetErr(&noted)
	cmd.SetArgs(args)
	cmd.SilenceErrors = true
	err = cmd.ExecuteContext(t.Context())
	return printed.String(), noted.String(), err
}

const lossy = "{parts: [{size: 1}, {size: 2, comment: hunter2}, {size: 3, comment: x}]}"

func TestWhatConversionLosesIsPrinted(t *testing.T) {
	t.Parallel()
	other := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
	for name, test := range map[string]struct {
		objects    []string
		out, notes string
		err        string
	}{
		"nothing": {objects: []string{box("v1", "a", "{parts: [{size: 1}]}"), box("v1alpha1", "b", "{}")}, notes: "checked 2 objects\n"},
		"fields, with the first object that has them": {
			objects: []string{box("v1", "a", "{}"), box("v1", "b", lossy), box("v1", "c", lossy)},
			out:     "Box, v1 to v1alpha1 and back: /spec/parts/*/comment lost in 2 objects, first default/b in stdin:6: /spec/parts/1/comment\n",
			notes:   "checked 3 objects\n", err: "2 of 3 objects cannot be converted to each version and back without a loss",
		},
		"objects that cannot be converted": {
			objects: []string{box("v1", "a.b", "{}"), other},
			out:     "Box, v1 to v1alpha1: cannot be converted in 1 object, first default/a.b in stdin:1: to v1alpha1: metadata.name: has a dot\n",
			notes:   "checked 1 object, skipped 1 of other kinds\n", err: "1 of 1 object cannot",
		},
		"a version that nobody knows": {
			objects: []string{box("v2", "a", "{}")}, out: "cannot be converted", notes: "checked 1 object", err: "1 of 1 object cannot",
		},
		"objects of other kinds alone": {objects: []string{other}, err: "found no object to check among 1: there are converters for Box.shop.example.com"},
		"what is not an object":        {objects: []string{"nothing"}, err: "stdin:1: not a Kubernetes object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, notes, err := convert(t, strings.Join(test.objects, "---\n"), "-f", "-")
			if !strings.Contains(out, test.out) || test.out == "" && out != "" || !strings.Contains(notes, test.notes) {
				t.Errorf("prints %q and %q", out, notes)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if strings.Contains(out+notes, "hunter2") {
				t.Error("a value is printed")
			}
		})
	}
}

func TestWhatTheCommandRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "box.yaml")
	if err := os.WriteFile(file, []byte(box("v1", "a", "{}")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown definition":          {[]string{"-f", file, "hats.shop.example.com"}, "there are converters for boxes.shop.example.com"},
		"a file that is not there":       {[]string{"-f", file + "x"}, "no such file"},
		"stdin twice":                    {[]string{"-f", "-", "-f", "-"}, "-"},
		"a kubeconfig that is not there": {[]string{"--kubeconfig", file + "x"}, "load kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := convert(t, "", test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if _, notes, err := convert(t, "", "-f", file, "boxes.shop.example.com"); err != nil || notes != "checked 1 object\n" {
		t.Errorf("a definition that is known: %q, %v", notes, err)
	}
}

// definition has the webhook at an address, or none.
func definition(config *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceDefinition {
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boxes.shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: boxes.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: boxes.Resource, Singular: "box", Kind: "Box"},
		},
	}
	for _, name := range []string{"v1alpha1", "v1"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1", Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes},
			},
		})
	}
	if config != nil {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: config, ConversionReviewVersions: []string{"v1"}}}
	}
	return crd
}

func inYAML(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) string {
	t.Helper()
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	text, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// byWebhook runs the command of a program without converters.
func byWebhook(t *testing.T, stdin string, args ...string) (out, notes string, err error) {
	t.Helper()
	cmd := application.ConvertByWebhooks("sallyport", clusterflags.Flags{})
	var printed, noted bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&printed)
	cmd.SetErr(&noted)
	cmd.SetArgs(args)
	cmd.SilenceErrors = true
	err = cmd.ExecuteContext(t.Context())
	return printed.String(), noted.String(), err
}

func shop(t *testing.T, options ...sallyport.Option) *sallyport.App {
	t.Helper()
	app, err := sallyport.New("shop", append(options, sallyport.WithConverters(converters()...))...)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func TestWebhooksOfDefinitionsAreCalled(t *testing.T) {
	t.Parallel()
	handler, err := shop(t).Handler(serving.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	good, wrong, away := server.URL+"/convert", server.URL+"/nothing", "https://127.0.0.1:1/convert"
	one := inYAML(t, definition(nil))
	for name, test := range map[string]struct {
		definition string
		objects    []string
		out        string
		status     int
		err        string
	}{
		"nothing is lost": {definition: inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{URL: &good, CABundle: ca})), objects: []string{box("v1", "a", "{}")}},
		"something is lost": {
			definition: inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{URL: &good, CABundle: ca})), objects: []string{box("v1", "b", lossy)},
			out: "Box, v1 to v1alpha1 and back: /spec/parts/*/comment lost in 1 object, first default/b in", status: 2,
		},
		"an object is refused": {
			definition: inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{URL: &good, CABundle: ca})), objects: []string{box("v1", "a.b", "{}")},
			out: "metadata.name: has a dot", status: 2,
		},
		"versions that differ in name alone": {definition: one, objects: []string{box("v1", "b", lossy)}},
		"a webhook that is not there":        {definition: inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{URL: &away, CABundle: ca})), objects: []string{box("v1", "a", "{}")}, err: "connection refused"},
		"another path":                       {definition: inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{URL: &wrong, CABundle: ca})), objects: []string{box("v1", "a", "{}")}, err: "the answer is HTTP 404"},
		"a certificate of nobody":            {definition: inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{URL: &good})), objects: []string{box("v1", "a", "{}")}, err: "certificate"},
		"no object":                          {definition: one, err: "found no object to check among 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, notes, err := byWebhook(t, strings.Join(append([]string{test.definition}, test.objects...), "---\n"), "-f", "-")
			var status cli.ExitStatus
			errors.As(err, &status)
			if int(status) != test.status || !strings.Contains(out, test.out) || test.out == "" && out != "" {
				t.Errorf("prints %q and %q: %v", out, notes, err)
			}
			if test.status == 0 && ((err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// service leads to an address, as one of a pod.
func service(t *testing.T, config *rest.Config, address string, port int32) {
	t.Helper()
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "shop"}}
	pod := &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "shop"}}}}
	create := func(object client.Object) {
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	create(pod)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	if err := cluster.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	target := &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "shop", UID: pod.UID}
	create(&corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, Name: "https", TargetPort: intstr.FromInt32(port)}}}})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: *meta.DeepCopy(), AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: &port, Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: target}},
	}
	create(slice)
	if endpoints := lab.EndpointsOf(t, *slice); endpoints != nil {
		create(endpoints)
	}
}

// Objects are read from the cluster as they are stored, and stay as they are.
func TestObjectsOfAClusterAreCheckedOnARealAPIServer(t *testing.T) {
	app := shop(t, sallyport.WithCRDs(definition(nil)))
	address, port := "127.0.0.1", 0
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			address = ip.IP.String()
		}
	}
	config := sallyporttest.Start(t, app, sallyporttest.WithSettings(func(s *sallyport.Settings) {
		s.Serving.BindAddress, port = address, int(s.Serving.SecurePort)
		s.Registration.URL = fmt.Sprintf("https://%s:%d", address, port)
	})).Config
	kubeconfig := sallyporttest.Kubeconfig(t, config)
	objects := dynamic.NewForConfigOrDie(config).Resource(boxes).Namespace("default")
	if out, notes, err := convert(t, "", "--kubeconfig", kubeconfig); err != nil || out != "" || notes != "checked 0 objects\n" {
		t.Errorf("without objects: %q, %q, %v", out, notes, err)
	}
	const n = 520
	for i := range n {
		parts := []any{map[string]any{"size": int64(1)}}
		if i%100 == 0 {
			parts = append(parts, map[string]any{"size": int64(2), "comment": "hunter2"})
		}
		if _, err := objects.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "shop.example.com/v1", "kind": "Box", "metadata": map[string]any{"name": fmt.Sprintf("box-%04d", i)}, "spec": map[string]any{"parts": parts},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, notes, err := convert(t, "", "--kubeconfig", kubeconfig)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("6 of %d objects", n)) {
		t.Errorf("error %v", err)
	}
	if want := "Box, v1 to v1alpha1 and back: /spec/parts/*/comment lost in 6 objects, first default/box-0000: /spec/parts/1/comment\n"; out != want {
		t.Errorf("prints %q, want %q", out, want)
	}
	if want := fmt.Sprintf("checked 500 boxes\nchecked %d objects\n", n); notes != want {
		t.Errorf("notes %q, want %q", notes, want)
	}
	// The same by the webhook that the definition names.
	lost := out
	out, notes, err = byWebhook(t, "", "--kubeconfig", kubeconfig)
	var status cli.ExitStatus
	if errors.As(err, &status); status != 2 || out != lost || !strings.Contains(notes, "6 of 520 objects") {
		t.Errorf("by the webhook it prints %q and %q: %v", out, notes, err)
	}
	if _, _, err := byWebhook(t, "", "--kubeconfig", kubeconfig, "hats.shop.example.com"); err == nil || !strings.Contains(err.Error(), `definition "hats.shop.example.com"`) {
		t.Errorf("a definition that is not there: %v", err)
	}
	if address != "127.0.0.1" { // to which the API server's proxy does not go
		service(t, config, address, int32(port))
		crd := inYAML(t, definition(&apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "shop", Path: new("/convert")}}))
		out, notes, err := byWebhook(t, crd+"---\n"+box("v1", "b", lossy), "--kubeconfig", kubeconfig, "-f", "-")
		var status cli.ExitStatus
		if errors.As(err, &status); status != 2 || !strings.Contains(out, "/spec/parts/*/comment lost in 1 object") {
			t.Errorf("by a Service it prints %q and %q: %v", out, notes, err)
		}
	}
	after, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Items, after.Items); diff != "" {
		t.Errorf("it has written:\n%s", diff)
	}
}
