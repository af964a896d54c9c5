// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testPolicyMode has the same PodDefaults in two namespaces, of which one is served by the
// webhook and the other by exported policies. The API server must store the same pods, or
// refuse them, in both.
func testPolicyMode(t *testing.T, e *env) {
	t.Parallel()
	if lab.KubernetesMinor(t) < 36 {
		t.Log("mutating policies are served in version v1 since Kubernetes 1.36: nothing to test before")
		return
	}
	served, exported := e.namespace(t, "by-webhook"), e.namespace(t, "by-policy")
	e.serve(t, served)
	for _, namespace := range []string{served, exported} {
		e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "editor"}})
		e.create(t, everyField(namespace))
	}
	second := func(namespace string) *kubeflowv1alpha1.PodDefault {
		return podDefault(namespace, "a-second", kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "use", Operator: metav1.LabelSelectorOpExists}, {Key: "second", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"no"}},
			}},
			Priority: 1, ConflictPolicy: kubeflowv1alpha1.ConflictDeny,
			Env:          []corev1.EnvVar{{Name: "SECOND", Value: "it's \"2\"\n"}},
			NodeSelector: map[string]string{"example.com/pool": "a"},
			Sidecars: []corev1.Container{{Name: "beside", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)}}},
		})
	}
	e.createSoon(t, second(served), simplePod(served, "probe"), meta.Mark("a-second"))
	e.create(t, second(exported))
	e.exportPolicies(t, exported)

	pods := map[string]func(*corev1.Pod){
		"plain":        func(*corev1.Pod) {},
		"not-selected": func(p *corev1.Pod) { p.Labels = nil },
		"one-of-two":   func(p *corev1.Pod) { p.Labels["second"] = "no" },
		"excluded": func(p *corev1.Pod) {
			p.Annotations = map[string]string{meta.ExcludeAnnotation: "true"}
		},
		"rich": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OWN", Value: "1"}, {Name: "SECOND", Value: "it's \"2\"\n"}}
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "x", Command: []string{"own"}},
				corev1.Container{Name: "istio-proxy", Image: "istio"}, corev1.Container{Name: "logs", Image: "fluentbit"})
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "x"}}
		},
		// What differs was put there by an earlier version of both, and stays.
		"from-a-backup": func(p *corev1.Pod) {
			p.Annotations = map[string]string{meta.Mark("every-field"): "1", meta.Mark("a-second"): "1"}
			p.Labels["team"] = "another"
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LITERAL", Value: "s3cret"}, {Name: "SECOND", Value: "s3cret"}}
			p.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			p.Spec.NodeSelector = map[string]string{"example.com/pool": "b"}
		},
		"conflicting-env":       func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LITERAL", Value: "s3cret"}} },
		"conflicting-label":     func(p *corev1.Pod) { p.Labels["team"] = "another" },
		"conflicting-container": func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "logs", Image: "x"}} },
		"conflicting-volume": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		},
		"other-node": func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"example.com/pool": "b"} },
	}
	// Until both policies are at work.
	eventually(t, "the policies to inject", func(ctx context.Context) (bool, error) {
		pod := simplePod(exported, "probe")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return pod.Annotations[meta.DecisionsAnnotation] == "a-second,every-field", err
	})
	eventually(t, "the policies to refuse", func(ctx context.Context) (bool, error) {
		pod := simplePod(exported, "probe")
		pods["conflicting-env"](pod)
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return apierrors.IsForbidden(err), nil
	})

	for name, prepare := range pods {
		t.Run(name, func(t *testing.T) {
			var stored [2]*corev1.Pod
			var errs [2]error
			for i, namespace := range []string{served, exported} {
				pod := simplePod(namespace, name)
				prepare(pod)
				if errs[i] = e.client.Create(t.Context(), pod); errs[i] == nil {
					stored[i] = e.stored(t, pod)
				}
			}
			conflict := strings.HasPrefix(name, "conflicting-") || name == "other-node"
			if conflict {
				for _, err := range errs {
					if err == nil || !strings.Contains(err.Error(), "conflict occurred while applying poddefaults: ") || strings.Contains(err.Error(), "s3cret") {
						t.Errorf("the pod is admitted, or the refusal says something else, or a value: %v", err)
					}
				}
				return
			}
			if errs != [2]error{} {
				t.Fatal(errs)
			}
			if want, got := withoutNames(t, stored[0]), withoutNames(t, stored[1]); want != got {
				t.Errorf("by the webhook\n%s\nby the policy\n%s", want, got)
			}
			again := stored[1].DeepCopy()
			again.ObjectMeta = metav1.ObjectMeta{Namespace: exported, Name: name + "-again", Labels: again.Labels, Annotations: again.Annotations}
			e.create(t, again)
			if want, got := withoutNames(t, stored[1]), withoutNames(t, e.stored(t, again)); want != got {
				t.Errorf("a pod that is sent again changes:\n%s\n%s", want, got)
			}
		})
	}
}

// exportPolicies applies what the command makes of the PodDefaults of a namespace.
func (e *env) exportPolicies(t *testing.T, namespace string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), kubectl(), "--kubeconfig", e.kubeconfig, "get", "poddefaults", "-n", namespace, "-o", "yaml").Output()
	if err != nil {
		t.Fatal(err)
	}
	export := exec.CommandContext(t.Context(), e.binary, "export", "-f", "-")
	export.Stdin, export.Stderr = strings.NewReader(string(list)), os.Stderr
	policies, err := export.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(file, policies, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		out, err := exec.Command(kubectl(), append([]string{"--kubeconfig", e.kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	run("apply", "-f", file)
	t.Cleanup(func() { run("delete", "-f", file) })
}

// withoutNames is a pod without what differs between two of the same kind.
func withoutNames(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	pod = pod.DeepCopy()
	annotations := map[string]string{}
	for key, value := range pod.Annotations {
		if key == meta.RevisionsAnnotation { // which policies do not write
			continue
		}
		if strings.HasPrefix(key, meta.MarkPrefix) {
			value = fmt.Sprint("set: ", value != "")
		}
		annotations[key] = value
	}
	rename := func(name *string) {
		if strings.HasPrefix(*name, "kube-api-access-") {
			*name = "kube-api-access"
		}
	}
	for i := range pod.Spec.Volumes {
		rename(&pod.Spec.Volumes[i].Name)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for j := range containers[i].VolumeMounts {
				rename(&containers[i].VolumeMounts[j].Name)
			}
		}
	}
	return string(toJSON(t, map[string]any{"labels": pod.Labels, "annotations": annotations, "spec": pod.Spec}))
}
