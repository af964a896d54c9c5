// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const installedNamespace = "crontab-system"

// installedService is the operator's, in the form of --service.
func installedService(port int) string { return fmt.Sprintf("%s/crontab:%d", installedNamespace, port) }

// install applies what the command manifests prints for a server that registers
// itself, and returns a client configuration with the rights of its service account.
func install(t *testing.T, config *rest.Config, port int) *rest.Config {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// There is no network of a cluster: the Service leads to this machine.
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installedNamespace}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: installedNamespace, Name: "crontab"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		},
	} {
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	command := operator(t).Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SetArgs([]string{"manifests", "--service", installedService(port), "--part", "crd,rbac"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, cluster, &out)
	crds := envtest.CRDInstallOptions{MaxTime: 30 * time.Second, PollInterval: 20 * time.Millisecond}
	if err := envtest.WaitForCRDs(config, []*apiextensionsv1.CustomResourceDefinition{crd(t)}, crds); err != nil {
		t.Fatal(err)
	}

	server := rest.CopyConfig(config)
	server.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + installedNamespace + ":crontab",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + installedNamespace, "system:authenticated"},
	}
	return server
}

// apply applies a stream of YAML documents on the server's side.
func apply(t *testing.T, cluster client.Client, stream io.Reader) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(stream, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = cluster.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))
		}
		if err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}
