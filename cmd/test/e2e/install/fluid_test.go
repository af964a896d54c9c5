// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/test/fluid"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestTheFluidGuide goes the way of docs/fluid-migration.md, there and back, with the
// commands that stand in it. All the time pods are created that mount a Dataset.
func TestTheFluidGuide(t *testing.T) {
	t.Parallel() // most of it is waiting
	steps := guide(t, filepath.Join(top, "docs/fluid-migration.md"))
	command := sallyport(t)
	tools, folder := t.TempDir(), t.TempDir()
	for name, path := range map[string]string{"kubectl": filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "sallyport": command} {
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := startCluster(t, map[string]func(*cluster, *testing.T, *corev1.Pod) (*container, error){
		"registry.example.com/sallyport:v1": runSallyport(command),
		"registry.example.com/fluid-webhook:v1": func(c *cluster, t *testing.T, pod *corev1.Pod) (*container, error) {
			return c.imitate(t, pod, 9443, fluidAnswer)
		},
	})
	certificate, key, err := selfSigned("fluid-pod-admission-webhook.fluid-system.svc")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"webhook", "configuration"} {
		text, err := os.ReadFile(filepath.Join("testdata/fluid", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer("CERTIFICATE", base64.StdEncoding.EncodeToString(certificate), "KEY", base64.StdEncoding.EncodeToString(key)).Replace(string(text))
		if err := os.WriteFile(filepath.Join(folder, name+"-installed.yaml"), []byte(filled), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(script string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+script)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+c.kubeconfig, "IMAGE=registry.example.com/sallyport:v1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v in\n%s\n%s", err, script, out)
		}
	}
	step := func(heading string) {
		t.Helper()
		if steps[heading] == "" {
			t.Fatalf("the guide has no step %q", heading)
		}
		run(steps[heading])
	}

	c.namespace(t, "fluid-system", nil)
	c.namespace(t, profile, nil)
	c.datasetOfTheTeam(t)
	run("kubectl apply -f webhook-installed.yaml; kubectl --namespace fluid-system rollout status deployment fluid-webhook --timeout 5m; kubectl apply -f configuration-installed.yaml")
	c.eventually(t, "Fluid's webhook to answer", func(ctx context.Context) (bool, error) {
		_, err := c.placed(ctx, "there-before", metav1.CreateOptions{})
		return true, err
	})

	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	pods, failed := 0, []string{}
	watching.Go(func() {
		for ; lab.Sleep(ctx, 100*time.Millisecond); pods++ {
			if _, err := c.placed(ctx, "probe", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil && ctx.Err() == nil {
				failed = append(failed, err.Error())
			}
		}
	})
	t.Cleanup(func() { stop(); watching.Wait() })
	for _, heading := range []string{"Before you begin", "1. See what would change", "2. Put Sallyport beside it", "3. Take Fluid's webhook away", "4. See that it works"} {
		step(heading)
	}
	placed, err := c.placed(t.Context(), "probe", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if got := placed.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(got) != 1 {
		t.Errorf("the pod prefers %+v", got)
	}
	c.followsTheProfile(t)
	step("The way back")
	if _, err := c.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "fluid-pod-admission-webhook", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	stop()
	watching.Wait()
	if pods < 20 || len(failed) > 0 {
		t.Errorf("%d of %d pods were refused or not placed:\n%s", len(failed), pods, strings.Join(slices.Compact(failed[:min(5, len(failed))]), "\n"))
	}
}

// datasetOfTheTeam makes a Dataset as Fluid's controllers leave it.
func (c *cluster) datasetOfTheTeam(t *testing.T) {
	t.Helper()
	create := func(resource string, kind kinds.Kind, status map[string]any) {
		t.Helper()
		object := fluid.Object(kind, profile, "data", nil, status)
		definitions := c.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		definition := fluid.Definition(kind)
		definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		text, err := json.Marshal(definition)
		if err == nil {
			_, err = definitions.Patch(t.Context(), definition.Name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "test"})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.eventually(t, "the definition", func(ctx context.Context) (bool, error) {
			_, err := c.objects.Resource(schema.GroupVersionResource{Group: kinds.Group, Version: kinds.Version, Resource: resource}).
				Namespace(profile).Create(ctx, object, metav1.CreateOptions{})
			return err == nil, err
		})
	}
	create("alluxioruntimes", "AlluxioRuntime", nil)
	create("datasets", kinds.Dataset, fluid.Bound(profile, "data", "alluxio"))
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"fluid.io/s-" + profile + "-data": "true"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := c.client.CoreV1().PersistentVolumeClaims(profile).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// placed creates a pod that mounts the Dataset. The error says why it is not placed by it.
func (c *cluster) placed(ctx context.Context, name string, options metav1.CreateOptions) (*corev1.Pod, error) {
	volume := corev1.Volume{Name: "v"}
	volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}
	pod, err := c.client.CoreV1().Pods(profile).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{dataset.ServerfulLabel: "true"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), Volumes: []corev1.Volume{volume},
			Containers: []corev1.Container{{Name: "app", Image: "app:1", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/data"}}}},
		},
	}, options)
	switch {
	case err != nil:
		return nil, err
	case pod.Annotations[dataset.InUseAnnotation] != "data" || pod.Spec.Affinity == nil || pod.Spec.Containers[0].VolumeMounts[0].MountPropagation == nil:
		return nil, fmt.Errorf("the pod has %v and %+v", pod.Annotations, pod.Spec.Affinity)
	}
	return pod, nil
}

// followsTheProfile changes the ConfigMap, and back, and waits until that counts.
func (c *cluster) followsTheProfile(t *testing.T) {
	t.Helper()
	configMaps := c.client.CoreV1().ConfigMaps("fluid-system")
	for _, change := range []struct {
		from, to string
		weight   int32
	}{{"weight: 100", "weight: 7", 7}, {"weight: 7", "weight: 700", 7}, {"weight: 700", "weight: 100", 100}} {
		o, err := configMaps.Get(t.Context(), "webhook-plugins", metav1.GetOptions{})
		if err == nil {
			o.Data["pluginsProfile"] = strings.Replace(o.Data["pluginsProfile"], change.from, change.to, 1)
			_, err = configMaps.Update(t.Context(), o, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.eventually(t, "the profile to count", func(ctx context.Context) (bool, error) {
			pod, err := c.placed(ctx, "probe", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return false, err
			}
			return pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight == change.weight, nil
		})
	}
}

// fluidAnswer imitates Fluid's webhook, as far as it matters here: for pods that mount the
// one Dataset, and without looking whether it was there before.
func fluidAnswer(r *http.Request) (any, error) {
	var review struct {
		Request struct {
			UID    types.UID
			Object corev1.Pod
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	pod := review.Request.Object
	affinity := pod.Spec.Affinity
	if affinity == nil {
		affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	}
	preferred := &affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "fluid.io/s-" + profile + "-data", Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}},
	}})
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": map[string]string{dataset.InUseAnnotation: "data"}},
		{"op": "add", "path": "/spec/affinity", "value": affinity},
		{"op": "add", "path": "/spec/containers/0/volumeMounts/0/mountPropagation", "value": "HostToContainer"},
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{
		"uid": review.Request.UID, "allowed": true, "patchType": "JSONPatch", "patch": patch,
	}}, nil
}
