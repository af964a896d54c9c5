// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// foreseen is a combination of a pod and an object that the API server refuses.
type foreseen struct {
	adds    kubeflowv1alpha1.PodDefaultSpec
	pod     func(*corev1.Pod) // before
	becomes func(*corev1.Pod) // as the object would make it
}

// testForeseen holds that what is denied in the API server's stead is what it refuses, and
// that it is the PodDefault which is named then.
func testForeseen(t *testing.T, e *env) {
	bare, served := e.namespace(t, "foreseen-bare"), e.namespace(t, "foreseen")
	e.serve(t, served)
	type spec = kubeflowv1alpha1.PodDefaultSpec
	gpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{"example.com/gpu": resource.MustParse(n)}
	}
	no, yes := false, true
	tests := map[string]foreseen{
		"host-port": {
			spec{Ports: []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}}, func(*corev1.Pod) {}, func(p *corev1.Pod) {
				for i := range p.Spec.Containers {
					p.Spec.Containers[i].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}
				}
			}},
		"host-network": {
			spec{Ports: []corev1.ContainerPort{{ContainerPort: 1}}}, func(p *corev1.Pod) { p.Spec.HostNetwork = true }, func(p *corev1.Pod) {
				for i := range p.Spec.Containers {
					p.Spec.Containers[i].Ports = []corev1.ContainerPort{{ContainerPort: 1}}
				}
			}},
		"port-name": {
			spec{Ports: []corev1.ContainerPort{{ContainerPort: 1, Name: "web"}}},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 2, Name: "web"}}
			},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 2, Name: "web"}, {ContainerPort: 1, Name: "web"}}
			}},
		"device-path": {
			spec{VolumeDevices: []corev1.VolumeDevice{{Name: "block", DevicePath: "/data"}}},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/data"}}
			},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "block", DevicePath: "/data"}}
			}},
		"device-of-no-claim": {
			spec{VolumeDevices: []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}}, func(*corev1.Pod) {},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
			}},
		"escalation": {
			spec{ContainerSecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no}},
			func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes} },
			func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = &no }},
		"figures": {
			spec{Resources: &corev1.ResourceRequirements{Limits: gpu("2")}},
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = gpu("1") },
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = gpu("2") }},
		"claim": {
			spec{Resources: &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "missing"}}}}, func(*corev1.Pod) {},
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "missing"}} }},
		"nameservers": {
			spec{DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1", "10.0.0.2"}}},
			func(p *corev1.Pod) {
				p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.3", "10.0.0.4"}}
			},
			func(p *corev1.Pod) {
				p.Spec.DNSConfig.Nameservers = append(p.Spec.DNSConfig.Nameservers, "10.0.0.1", "10.0.0.2")
			}},
	}
	maps.Copy(tests, foreseenOfPods())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := func(namespace string) *corev1.Pod {
				p := simplePod(namespace, name)
				p.Labels = map[string]string{name: "true"}
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "helper", Image: "i"})
				p.Spec.Volumes = []corev1.Volume{{Name: "v"}, {Name: "block", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "block"}}}}
				test.pod(p)
				return p
			}
			refused := pod(bare)
			test.becomes(refused)
			if err := e.client.Create(t.Context(), refused, client.DryRunAll); !apierrors.IsInvalid(err) {
				t.Errorf("the API server takes the pod: %v", err)
			}
			test.adds.Selector.MatchLabels = map[string]string{name: "true"}
			e.create(t, podDefault(served, name, test.adds))
			eventually(t, "the pod to be denied", func(ctx context.Context) (bool, error) {
				err := e.client.Create(ctx, pod(served), client.DryRunAll)
				return err != nil && strings.Contains(err.Error(), "PodDefault "+served+"/"+name+": ") && strings.Contains(err.Error(), "which the API server refuses"), nil
			})
		})
	}

	// What is refused behind the webhook still comes with its warnings.
	e.createSoon(t, podDefault(served, "keeps", spec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"keeps": "true"}}, ConflictPolicy: kubeflowv1alpha1.ConflictKeepPod,
		Env: []corev1.EnvVar{{Name: "A", Value: "x"}},
	}), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "probe", Labels: map[string]string{"keeps": "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}}, meta.Mark("keeps"))
	warned := &warnings{}
	config := rest.CopyConfig(e.config)
	config.WarningHandler, config.WarningHandlerWithContext = nil, warned
	c, err := client.New(config, client.Options{Scheme: e.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	pod := simplePod(served, "invalid")
	pod.Labels = map[string]string{"keeps": "true"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "own"}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "missing", MountPath: "/x"}}
	if err := c.Create(t.Context(), pod); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid pod: %v", err)
	}
	if got := strings.Join(warned.take(), "\n"); !strings.Contains(got, "PodDefault "+served+"/keeps: env A of container main: kept the value of the pod") {
		t.Errorf("warnings: %q", got)
	}
}
