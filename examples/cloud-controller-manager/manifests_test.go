// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/internal/registration/rbac"
)

// read reads the objects of a file, strictly.
func read(t *testing.T, path string) []runtime.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var kind runtime.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		object, err := scheme.Scheme.New(kind.GroupVersionKind())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Errorf("%s: %s: %v", path, kind.Kind, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// programs are the pods that run the command, by file.
func programs(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	out := map[string]corev1.PodSpec{}
	err := filepath.WalkDir("manifests", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains([]string{"admission.yaml", "kubeadm.yaml"}, entry.Name()) {
			return err // these are for kube-apiserver's and kubeadm's own decoders
		}
		for _, object := range read(t, path) {
			switch object := object.(type) {
			case *corev1.Pod:
				out[path] = object.Spec
			case *appsv1.Deployment:
				out[path] = object.Spec.Template.Spec
			}
		}
		return nil
	})
	if err != nil || len(out) != 3 {
		t.Fatalf("%d programs: %v", len(out), err)
	}
	return out
}

// printedConfiguration is what the command prints that it would register, with the flags of the pod.
func printedConfiguration(t *testing.T, pod corev1.PodSpec) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	command, err := newCommand(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs(append(slices.Clone(pod.Containers[0].Command[1:]), "--print-webhook-configuration"))
	if err := command.Execute(); err != nil {
		t.Fatalf("the flags are no good: %v", err)
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(out.Bytes(), configuration); err != nil {
		t.Fatal(err)
	}
	return configuration
}

func TestEveryManifestRegistersWebhooksThatCannotBringTheClusterToAHalt(t *testing.T) {
	for path, pod := range programs(t) {
		t.Run(path, func(t *testing.T) {
			container, configuration := pod.Containers[0], printedConfiguration(t, pod)
			if len(configuration.Webhooks) != 1 {
				t.Fatalf("%d webhooks", len(configuration.Webhooks))
			}
			webhook := configuration.Webhooks[0]
			if *webhook.FailurePolicy != admissionregistrationv1.Ignore || len(webhook.MatchConditions) != 2 {
				t.Errorf("%+v", webhook)
			}
			for _, rule := range webhook.Rules {
				if diff := cmp.Diff([]string{"persistentvolumes"}, rule.Resources); diff != "" {
					t.Errorf("its own pods, or what they need, wait for it:\n%s", diff)
				}
			}
			if service := webhook.ClientConfig.Service; service != nil && *service.Port != 443 || service == nil && *webhook.ClientConfig.URL != "https://127.0.0.1:10260/mutate-persistentvolumelabel" {
				t.Errorf("%+v", webhook.ClientConfig)
			}
			if container.ReadinessProbe == nil || container.LivenessProbe == nil || !pod.HostNetwork {
				t.Error("no probes, or a network that is not there yet")
			}
		})
	}
}

func TestThePodsOfTheDeploymentTolerateWhatTheyAreToTakeAway(t *testing.T) {
	pod := programs(t)[filepath.Join("manifests", "in-cluster", "deployment.yaml")]
	if !slices.ContainsFunc(pod.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.Key == "node.cloudprovider.kubernetes.io/uninitialized"
	}) {
		t.Error("the pods wait for a node that they are to initialise")
	}
}

func TestTheRoleHasWhatTheWebhooksNeedAndNoMore(t *testing.T) {
	for _, object := range read(t, filepath.Join("manifests", "in-cluster", "rbac.yaml")) {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			if diff := cmp.Diff(rbac.PolicyRules("cloud-webhooks"), role.Rules); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Error("there is no ClusterRole")
}

func TestTheDeploymentAnswersOnlyWhomTheAPIServerKnows(t *testing.T) {
	pod := programs(t)[filepath.Join("manifests", "in-cluster", "deployment.yaml")]
	if !slices.Contains(pod.Containers[0].Command, "--webhook-authentication=Delegated") {
		t.Errorf("any client may call: %v", pod.Containers[0].Command)
	}
	var roles []string
	for _, object := range read(t, filepath.Join("manifests", "in-cluster", "rbac.yaml")) {
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			roles = append(roles, binding.RoleRef.Name)
		case *rbacv1.RoleBinding:
			roles = append(roles, binding.RoleRef.Name)
		}
	}
	for _, role := range []string{"system:auth-delegator", "extension-apiserver-authentication-reader"} {
		if !slices.Contains(roles, role) {
			t.Errorf("the role %s is not bound", role)
		}
	}
}
