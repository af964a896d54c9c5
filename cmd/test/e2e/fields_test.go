// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

func simplePod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"use": "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "jupyter"}}},
	}
}

func podDefault(namespace, name string, spec kubeflowv1alpha1.PodDefaultSpec) *kubeflowv1alpha1.PodDefault {
	if spec.Selector.MatchLabels == nil && spec.Selector.MatchExpressions == nil {
		spec.Selector.MatchLabels = map[string]string{"use": "true"}
	}
	return &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

func envPodDefault(namespace, name string) *kubeflowv1alpha1.PodDefault {
	return podDefault(namespace, name, kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "FROM_PODDEFAULT", Value: "1"}}})
}

// everyField is a PodDefault that sets all there is to set.
func everyField(namespace string) *kubeflowv1alpha1.PodDefault {
	no := false
	always := corev1.ContainerRestartPolicyAlways
	seconds := int64(60)
	return podDefault(namespace, "every-field", kubeflowv1alpha1.PodDefaultSpec{
		Desc: "everything",
		Env: []corev1.EnvVar{
			{Name: "LITERAL", Value: "1"},
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
		},
		EnvFrom: []corev1.EnvFromSource{{Prefix: "P_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}},
		Volumes: []corev1.Volume{
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
			{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}},
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "pipelines.kubeflow.org", Path: "token"}},
			}}}},
			{Name: "scratch"}, // no source: the API server makes it an emptyDir
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "secret", MountPath: "/secret", ReadOnly: true},
			{Name: "conf", MountPath: "/etc/pip.conf", SubPath: "pip.conf"},
			{Name: "conf", MountPath: "/etc/condarc", SubPath: "condarc"},
		},
		Tolerations: []corev1.Toleration{
			{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
		},
		Labels:      map[string]string{"team": "a"},
		Annotations: map[string]string{"example.com/note": "x"},
		InitContainers: []corev1.Container{
			{Name: "prepare", Image: "busybox", VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}},
			{Name: "native", Image: "proxy", RestartPolicy: &always},
		},
		Sidecars:                     []corev1.Container{{Name: "logs", Image: "fluentbit"}},
		ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "registry"}},
		ServiceAccountName:           "editor",
		AutomountServiceAccountToken: &no,
		Command:                      []string{"start"},
		Args:                         []string{"--fast"},
	})
}

func testFields(t *testing.T, e *env) {
	name := e.namespace(t, "fields")
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "editor"}})
	e.serve(t, name)
	pd := everyField(name)
	e.createSoon(t, pd, simplePod(name, "probe"), meta.Mark("every-field"))

	sent := simplePod(name, "notebook")
	sent.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OWN", Value: "1"}}
	sent.Spec.Containers = append(sent.Spec.Containers,
		corev1.Container{Name: "second", Image: "x", Command: []string{"own"}}, corev1.Container{Name: "istio-proxy", Image: "istio"})
	e.create(t, sent)
	got := e.stored(t, sent)
	main, second, proxy := got.Spec.Containers[0], got.Spec.Containers[1], got.Spec.Containers[2]

	check := func(what string, ok bool, value any) {
		t.Helper()
		if !ok {
			t.Errorf("%s: got %+v", what, value)
		}
	}
	check("env behind the pod's own", slices.Equal(envNames(main), []string{"OWN", "LITERAL", "POD_IP", "CPU"}), main.Env)
	check("env of the second container", slices.Equal(envNames(second), []string{"LITERAL", "POD_IP", "CPU"}), second.Env)
	check("no env in the mesh proxy", len(proxy.Env) == 0, proxy.Env)
	check("envFrom", len(main.EnvFrom) == 1 && main.EnvFrom[0].SecretRef.Name == "s", main.EnvFrom)
	check("mounts of one volume at two paths", len(main.VolumeMounts) == 3 && main.VolumeMounts[2].SubPath == "condarc", main.VolumeMounts)
	volumes := map[string]corev1.Volume{}
	for _, volume := range got.Spec.Volumes {
		volumes[volume.Name] = volume
	}
	check("volumes, and no token", len(volumes) == 4 && volumes["scratch"].EmptyDir != nil && volumes["token"].Projected != nil, got.Spec.Volumes)
	check("tolerations", slices.ContainsFunc(got.Spec.Tolerations, func(tol corev1.Toleration) bool { return tol.Key == "pool" }), got.Spec.Tolerations)
	notReady := slices.IndexFunc(got.Spec.Tolerations, func(tol corev1.Toleration) bool { return tol.Key == corev1.TaintNodeNotReady })
	check("tolerationSeconds that the API server had set", notReady >= 0 && *got.Spec.Tolerations[notReady].TolerationSeconds == 60, got.Spec.Tolerations)
	check("labels", got.Labels["team"] == "a" && got.Labels["use"] == "true", got.Labels)
	check("annotations", got.Annotations["example.com/note"] == "x", got.Annotations)
	check("the mark", got.Annotations[meta.Mark("every-field")] == pd.ResourceVersion, got.Annotations)
	check("the revision", got.Annotations[meta.RevisionsAnnotation] == "every-field@"+plan.RevisionOf(plan.Meaning(&pd.Spec)), got.Annotations)
	check("the decisions", got.Annotations[meta.DecisionsAnnotation] == "every-field", got.Annotations)
	check("init containers", len(got.Spec.InitContainers) == 2 && got.Spec.InitContainers[1].RestartPolicy != nil, got.Spec.InitContainers)
	check("sidecar", len(got.Spec.Containers) == 4 && got.Spec.Containers[3].Name == "logs" && len(got.Spec.Containers[3].Env) == 0, got.Spec.Containers)
	check("image pull secrets", len(got.Spec.ImagePullSecrets) == 1 && got.Spec.ImagePullSecrets[0].Name == "registry", got.Spec.ImagePullSecrets)
	check("service account", got.Spec.ServiceAccountName == "editor" && got.Spec.DeprecatedServiceAccount == "editor", got.Spec.ServiceAccountName)
	check("automount", got.Spec.AutomountServiceAccountToken != nil && !*got.Spec.AutomountServiceAccountToken, got.Spec.AutomountServiceAccountToken)
	check("command and args", slices.Equal(main.Command, []string{"start"}) && slices.Equal(main.Args, []string{"--fast"}), main)
	check("own command kept", slices.Equal(second.Command, []string{"own"}) && slices.Equal(second.Args, []string{"--fast"}), second)
	check("no command in the mesh proxy", proxy.Command == nil && proxy.Args == nil, proxy)
}

// testSecondPass sends the stored pod again, as backups and copies of running pods
// do, and lets the API server call the webhook for its own result.
func testSecondPass(t *testing.T, e *env) {
	name := e.namespace(t, "second-pass")
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "editor"}})
	e.serve(t, name)
	e.createSoon(t, everyField(name), simplePod(name, "probe"), meta.Mark("every-field"))
	pod := simplePod(name, "first")
	e.create(t, pod)
	first := e.stored(t, pod)

	again := first.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Namespace: name, Name: "second", Labels: first.Labels, Annotations: first.Annotations}
	e.create(t, again)
	second := e.stored(t, again)
	if !equalJSON(t, first.Spec, second.Spec) || !equalJSON(t, first.Annotations, second.Annotations) || !equalJSON(t, first.Labels, second.Labels) {
		t.Errorf("the second pass changed the pod:\n%s\n%s", toJSON(t, first), toJSON(t, second))
	}
}

func envNames(container corev1.Container) []string {
	var names []string
	for _, variable := range container.Env {
		names = append(names, variable.Name)
	}
	return names
}

// testChanges follows one PodDefault from one selector to another, and to its end.
func testChanges(t *testing.T, e *env) {
	name := e.namespace(t, "changes")
	e.serve(t, name)
	pd := envPodDefault(name, "env")
	e.createSoon(t, pd, simplePod(name, "probe"), meta.Mark("env"))
	other := simplePod(name, "probe")
	other.Labels = map[string]string{"other": "true"}
	applied := func(probe *corev1.Pod, want bool) {
		t.Helper()
		eventually(t, "the change to be seen", func(ctx context.Context) (bool, error) {
			pod := probe.DeepCopy()
			err := e.client.Create(ctx, pod, client.DryRunAll)
			return (len(pod.Spec.Containers[0].Env) == 1) == want, err
		})
	}
	applied(other, false)

	pd.Spec.Selector.MatchLabels = other.Labels
	if err := e.client.Update(t.Context(), pd); err != nil {
		t.Fatal(err)
	}
	applied(other, true)
	applied(simplePod(name, "probe"), false)

	if err := e.client.Delete(t.Context(), pd); err != nil {
		t.Fatal(err)
	}
	applied(other, false)
}
