// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// oneContainer is the spec of a pod template.
const oneContainer = "spec: {containers: [{name: main, image: x, env: [{name: HTTP_PROXY, value: mine}]}]}"

// TestThePodsOfAWorkloadHaveAController checks what creates the pods of those workloads
// that do not themselves.
func TestThePodsOfAWorkloadHaveAController(t *testing.T) {
	const template = "template: {" + oneContainer + "}"
	for what, c := range map[string]struct{ object, want string }{
		"a Deployment":  {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {" + template + "}}", "apps/v1 ReplicaSet web-HASH"},
		"a StatefulSet": {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {" + template + "}}", "apps/v1 StatefulSet db"},
		"a Job":         {"{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {" + template + "}}", "batch/v1 Job train"},
		"a CronJob":     {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: report}, spec: {jobTemplate: {spec: {" + template + "}}}}", "batch/v1 Job report-00000000"},
		"a Notebook":    {"{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {name: lab}, spec: {" + template + "}}", "apps/v1 StatefulSet lab"},
		"a worker":      {"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: fit}, spec: {mpiReplicaSpecs: {Worker: {" + template + "}}}}", "kubeflow.org/v2beta1 MPIJob fit"},
		"a launcher":    {"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: fit}, spec: {mpiReplicaSpecs: {Launcher: {" + template + "}}}}", "batch/v1 Job fit-launcher"},
		"a JobSet":      {"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: fit}, spec: {replicatedJobs: [{name: node, template: {spec: {" + template + "}}}]}}", "batch/v1 Job fit-node-0"},
		"a pod":         {"{apiVersion: v1, kind: Pod, metadata: {name: p}, " + oneContainer + "}", "  "},
	} {
		objects, _, err := manifest.Parse("in.yaml", []byte(c.object))
		if err != nil {
			t.Fatal(err)
		}
		pods, err := PodsOf(objects[0], "default", nil)
		if err != nil || len(pods) != 1 {
			t.Fatalf("%s: %d pods, %v", what, len(pods), err)
		}
		of := pods[0].Controller
		want := strings.ReplaceAll(c.want, "HASH", pods[0].Labels["pod-template-hash"])
		if got := of.APIVersion + " " + of.Kind + " " + of.Name; got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

func FuzzPodsOf(f *testing.F) {
	for _, seed := range []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: o}, spec: {template: {" + oneContainer + "}}}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: o}, spec: {ordinals: {start: -1}, volumeClaimTemplates: [{}, null], template: {" + oneContainer + "}}}",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: o}, spec: {template: {spec: {tolerations: [null, {}]}}}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {generateName: o}, spec: {jobTemplate: {spec: {completionMode: Indexed, template: {spec: {containers: [null, {env: [1]}]}}}}}}",
		"{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {labels: {a: b}}, spec: {template: {spec: {containers: [{ports: null}], securityContext: 1}}}}",
		"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {'': {template: {spec: {}}}, a/b: null}}}",
		"{apiVersion: kubeflow.org/v1beta1, kind: WorkspaceKind, spec: {podTemplate: {extraEnv: [1, {value: '{{httpPathPrefix \"a\"}}'}], extraVolumes: [{}], options: {imageConfig: {spawner: {default: a}, values: [{id: a, spec: {ports: [{id: a, port: -1}]}}]}, podConfig: {spawner: {default: a}, values: [{id: a}]}}}}}",
		"{apiVersion: kubeflow.org/v1beta1, kind: Workspace, spec: {podTemplate: {volumes: {home: x, data: [{}], secrets: [{}]}}}}",
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: 1, template: {spec: {template: {spec: {}}}}}, {}]}}",
		"{apiVersion: x.y/v1, kind: Z, spec: {a: {template: {spec: {containers: [[]]}}}, containers: [{image: x}], 'b~/c': [{metadata: {}, spec: {containers: [1]}}]}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := manifest.Parse("in.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, o := range objects {
			pods, _ := PodsOf(o, "default", func(string, string, string, string) (*manifest.Object, error) { return o, nil })
			for _, pod := range pods {
				again, _, err := manifest.Parse("pod.json", pod.Raw)
				if err != nil || len(again) != 1 || again[0].GVK() != PodKind {
					t.Fatalf("%s is not a pod (%v): of %s", pod.Raw, err, o.Raw)
				}
				if diff := cmp.Diff(again[0].Labels, pod.Labels); pod.MadeBy != nil && len(pod.Labels) > 0 && diff != "" {
					t.Errorf("labels (-written +known):\n%s", diff)
				}
			}
		}
	})
}
