// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// odd are parts of PodDefaults that Kubeflow's definition accepts and that no author would
// write on purpose. Some of them run.
var odd = []string{
	"volumes: [{name: v, configMap: {name: My_CM, optional: true}}]",
	"volumes: [{name: v, configMap: {name: My_CM}}]",
	"volumes: [{name: v, configMap: {name: ''}}]",
	"volumes: [{name: v, secret: {secretName: My_Secret, optional: true}}]",
	"volumes: [{name: v, secret: {secretName: a/b}}]",
	"volumes: [{name: v, secret: {secretName: s, defaultMode: 512}}]",
	"volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: ../x}]}}]",
	"volumes: [{name: v, persistentVolumeClaim: {claimName: My_Claim}}]",
	"volumes: [{name: v, projected: {sources: [{secret: {name: My_Secret, optional: true}}, {configMap: {name: My_CM}}]}}]",
	"volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 10}}]}}]",
	"volumes: [{name: v, projected: {sources: [{}]}}]",
	"volumes: [{name: V, emptyDir: {}}]",
	"volumes: [{name: v, emptyDir: {medium: Disk}}]",
	"volumes: [{name: v, emptyDir: {}, secret: {secretName: s}}]",
	"volumes: [{name: v, hostPath: {path: a/../b}}]",
	"volumes: [{name: v, hostPath: {path: /a, type: Folder}}]",
	"volumes: [{name: v, nfs: {server: s, path: a}}]",
	"volumes: [{name: v, csi: {driver: a_b}}]",
	"volumes: [{name: v, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.nothing}}]}}]",
	"volumes: [{name: v, gitRepo: {repository: x, directory: ..}}]",
	"volumes: [{name: v, iscsi: {targetPortal: a, iqn: b, lun: 0}}]",
	"volumes: [{name: v, awsElasticBlockStore: {volumeID: x, partition: 300}}]",
	"volumes: [{name: v, azureDisk: {diskName: a, diskURI: b}}]",
	"volumes: [{name: v, storageos: {volumeName: A_B}}]",
	"volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWrite], resources: {requests: {storage: 1Gi}}}}}}]",
	"env: [{name: 'a=b'}]",
	"env: [{name: 'a b', value: x}]",
	"env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
	"env: [{name: A, valueFrom: {secretKeyRef: {name: My_Secret, key: k, optional: true}}}]",
	"env: [{name: A, valueFrom: {configMapKeyRef: {name: cm, key: a/b, optional: true}}}]",
	"env: [{name: A, valueFrom: {fieldRef: {apiVersion: v2, fieldPath: metadata.name}}}]",
	"env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.disk}}}]",
	"env: [{name: A, valueFrom: {}}]",
	"envFrom: [{prefix: '1-', configMapRef: {name: cm}}]",
	"envFrom: [{configMapRef: {name: My_CM, optional: true}}]",
	"envFrom: [{secretRef: {name: s-, optional: true}}]",
	"envFrom: [{}]",
	"tolerations: [{key: a, operator: Equals}]",
	"tolerations: [{key: a b, operator: Exists}]",
	"tolerations: [{operator: Equal, value: x}]",
	"tolerations: [{key: a, operator: Exists, value: x}]",
	"tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]",
	"tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: -5}]",
	"imagePullSecrets: [{name: My_Secret}]",
	"imagePullSecrets: [{}]",
	"sidecars: [{name: A, image: x}]",
	"sidecars: [{name: a, image: 'x y'}]",
	"sidecars: [{name: a, image: x, imagePullPolicy: Sometimes}]",
	"sidecars: [{name: a, image: x, ports: [{containerPort: 0}]}]",
	"sidecars: [{name: a, image: x, ports: [{containerPort: 1, name: UPPER}]}]",
	"sidecars: [{name: a, image: x, ports: [{containerPort: 1, protocol: ICMP}]}]",
	"sidecars: [{name: a, image: x, livenessProbe: {exec: {command: []}}}]",
	"sidecars: [{name: a, image: x, livenessProbe: {httpGet: {path: /, port: 70000}}}]",
	"sidecars: [{name: a, image: x, livenessProbe: {exec: {command: [x]}, successThreshold: 2}}]",
	"sidecars: [{name: a, image: x, lifecycle: {postStart: {}}}]",
	"sidecars: [{name: a, image: x, resources: {limits: {cpu: 1}, requests: {cpu: 2}}}]",
	"sidecars: [{name: a, image: x, securityContext: {runAsUser: -1}}]",
	"sidecars: [{name: a, image: x, securityContext: {capabilities: {add: [not-a-capability]}}}]",
	"sidecars: [{name: a, image: x, terminationMessagePolicy: Never}]",
	"sidecars: [{name: a, image: x, workingDir: relative}]",
	"sidecars: [{name: a, image: x, env: [{name: A}, {name: A}]}]",
	"initContainers: [{name: a, image: x, restartPolicy: Sometimes}]",
	"initContainers: [{name: a, image: x, lifecycle: {preStop: {exec: {command: [x]}}}}]",
	"serviceAccountName: A_B",
	"labels: {a: 'b c'}",
	"labels: {'a b': c}",
	"annotations: {'a b': c}",
	"annotations: {UPPER/x: c}",
	"volumeMounts: [{name: v, mountPath: relative}]\nvolumes: [{name: v, emptyDir: {}}]",
	"volumeMounts: [{name: v, mountPath: '/a:b'}]\nvolumes: [{name: v, emptyDir: {}}]",
	"volumeMounts: [{name: v, mountPath: /a, subPath: /abs}]\nvolumes: [{name: v, emptyDir: {}}]",
	"volumeMounts: [{name: v, mountPath: /a, subPath: a, subPathExpr: b}]\nvolumes: [{name: v, emptyDir: {}}]",
	"volumeMounts: [{name: v, mountPath: /a, mountPropagation: Both}]\nvolumes: [{name: v, emptyDir: {}}]",
}

// A PodDefault may be refused, or left out of pods, only for what the API server refuses in
// a pod: Kubeflow's webhook injects all others.
func TestWhatTheAPIServerRunsIsAcceptedOnARealAPIServer(t *testing.T) {
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(definitions...))
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default")
	podDefaults := dynamic.NewForConfigOrDie(config).Resource(v1alpha1.Resource(v1alpha1.PodDefaultResource)).Namespace("default")
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	runs := 0
	for i, text := range odd {
		var spec map[string]any
		var typed v1alpha1.PodDefaultSpec
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := yaml.Unmarshal([]byte(text), &typed); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Labels: typed.Labels, Annotations: typed.Annotations},
			Spec: corev1.PodSpec{
				Volumes: typed.Volumes, Tolerations: typed.Tolerations, ImagePullSecrets: typed.ImagePullSecrets, InitContainers: typed.InitContainers,
				ServiceAccountName: typed.ServiceAccountName,
				Containers:         append([]corev1.Container{{Name: "main", Image: "x", Env: typed.Env, EnvFrom: typed.EnvFrom, VolumeMounts: typed.VolumeMounts}}, typed.Sidecars...),
			},
		}
		_, errPod := pods.Create(t.Context(), pod, dryRun)
		spec["selector"] = map[string]any{}
		typed.Selector = metav1.LabelSelector{}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PodDefaultKind, "metadata": map[string]any{"name": fmt.Sprint("p", i)}, "spec": spec,
		}}
		_, errObject := podDefaults.Create(t.Context(), object, dryRun)
		errs, _ := validate.Spec(&typed, field.NewPath("spec"))
		if errPod != nil {
			continue
		}
		runs++
		if errObject != nil || len(errs) > 0 {
			t.Errorf("the API server accepts the pod, and the PodDefault is refused: %s\nby its definition: %v\nby the webhook: %v", text, errObject, errs)
		}
	}
	if runs < 10 {
		t.Errorf("only %d of %d pods are accepted", runs, len(odd))
	}
}
