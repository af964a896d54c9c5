// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// apiServer is a real one, and clients of it.
type apiServer struct {
	config  *rest.Config
	client  *kubernetes.Clientset
	objects dynamic.Interface
	mapper  meta.RESTMapper

	accepted map[string]bool // objects that dryRun has sent, in JSON
}

func connect(t *testing.T, config *rest.Config) *apiServer {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &apiServer{config, client, objects, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)), map[string]bool{}}
}

func (s *apiServer) namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// dryRun lets the API server check objects as kubectl apply --server-side
// --dry-run=server does, unknown fields included, and checks the pods of Deployments in
// a namespace in which Pod Security Standards are enforced as restricted. An object that it
// has taken before, it takes again: variants have most objects in common, large definitions
// among them, and each is sent once.
func (s *apiServer) dryRun(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		data, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if s.accepted[string(data)] {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Errorf("%s %s: %v", kind.Kind, object.GetName(), err)
			continue
		}
		var resource dynamic.ResourceInterface = s.objects.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if object.GetNamespace() == "" {
				t.Errorf("%s %s has no namespace", kind.Kind, object.GetName())
				continue
			}
			resource = s.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		force := true
		if _, err := resource.Patch(t.Context(), object.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
			DryRun: []string{metav1.DryRunAll}, FieldManager: "test", Force: &force, FieldValidation: metav1.FieldValidationStrict,
		}); err != nil {
			t.Errorf("%s %s: %v", kind.Kind, object.GetName(), err)
			continue
		}
		if kind.Kind == "Deployment" {
			s.dryRunPod(t, object)
		}
		s.accepted[string(data)] = !t.Failed()
	}
}

func (s *apiServer) dryRunPod(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	template, ok, err := unstructured.NestedMap(deployment.Object, "spec", "template")
	if err != nil || !ok {
		t.Fatalf("the Deployment has no template (%v)", err)
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.GenerateName = restricted, "server-"
	if _, err := s.client.CoreV1().Pods(restricted).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a pod of the Deployment %s: %v", deployment.GetName(), err)
	}
}

// restricted is a namespace that lets only such pods in.
const restricted = "restricted"
