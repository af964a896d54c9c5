// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// workloadArgs returns the arguments to review the objects in testdata/workloads.
func workloadArgs(more ...string) []string {
	return append([]string{
		"review", "-f", "testdata/workloads/objects.yaml", "--with", "testdata/workloads/poddefaults.yaml", "--with", "testdata/workloads/runtime.yaml",
		"--with", "testdata/workloads/accounts.yaml",
	}, more...)
}

func TestThePodsOfEachKindAreReviewed(t *testing.T) {
	got := sallyport(t, workloadArgs()...)
	if got.status != exitOK {
		t.Errorf("status %d", got.status)
	}
	equal(t, "workloads/want.txt", got.stdout)
	equal(t, "workloads/notes.txt", got.stderr)
	equal(t, "workloads/pods.yaml", sallyport(t, workloadArgs("-o", "yaml")...).stdout)
}

// oneContainer is the spec of a pod template, with a variable that conflicts with
// podDefaultYAML.
const oneContainer = "spec: {containers: [{name: main, image: x, env: [{name: HTTP_PROXY, value: mine}]}]}"

func TestAWorkloadWhosePodsWouldBeDeniedEndsWithStatus3(t *testing.T) {
	const labelled = "template: {metadata: {labels: {proxy: 'true'}}, " + oneContainer + "}"
	for name, tc := range map[string]struct{ text, pod string }{
		"a Deployment":            {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: o}, spec: {" + labelled + "}}", "of Deployment o"},
		"a StatefulSet":           {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: o}, spec: {" + labelled + "}}", "Pod o-0 of StatefulSet o"},
		"a DaemonSet":             {"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: o}, spec: {" + labelled + "}}", "Pod o-* of DaemonSet o"},
		"a ReplicaSet":            {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: o}, spec: {" + labelled + "}}", "Pod o-* of ReplicaSet o"},
		"a ReplicationController": {"{apiVersion: v1, kind: ReplicationController, metadata: {name: o}, spec: {" + labelled + "}}", "Pod o-* of ReplicationController o"},
		"a PodTemplate":           {"{apiVersion: v1, kind: PodTemplate, metadata: {name: o}, " + labelled + "}", "Pod o-* of PodTemplate o"},
		"a Job":                   {"{apiVersion: batch/v1, kind: Job, metadata: {name: o}, spec: {" + labelled + "}}", "Pod o-* of Job o"},
		"a CronJob":               {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: o}, spec: {jobTemplate: {spec: {" + labelled + "}}}}", "of CronJob o"},
		"a Notebook, by its own label": {
			"{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {name: o, labels: {proxy: 'true'}}, spec: {template: {" + oneContainer + "}}}", "Pod o-0 of Notebook o",
		},
		"an older Notebook": {
			"{apiVersion: kubeflow.org/v1beta1, kind: Notebook, metadata: {name: o, labels: {proxy: 'true'}}, spec: {template: {" + oneContainer + "}}}", "Pod o-0 of Notebook o",
		},
		"a worker of an MPIJob": {
			"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: o}, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: a}]}}}, Worker: {" + labelled + "}}}}",
			"Pod o-worker-0 of MPIJob o",
		},
		"a kind that nobody knows": {
			"{apiVersion: example.com/v1, kind: Farm, metadata: {name: o}, spec: {pools: [{podTemplate: {metadata: {labels: {proxy: 'true'}}, " + oneContainer + "}}]}}", "Pod o-* of Farm o",
		},
		"a Job inside of an Experiment": {
			"{apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {name: o}, spec: {trialTemplate: {trialSpec: {apiVersion: batch/v1, kind: Job, spec: {" + labelled + "}}}}}",
			"Pod o-* of Experiment o",
		},
		"an object of a List": {
			"{apiVersion: v1, kind: List, items: [{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: o}, spec: {" + labelled + "}}]}", "Pod o-* of ReplicaSet o",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyportWith(t, tc.text, "review", "-f", "-", "--with", file(t, "with.yaml", podDefaultYAML))
			if got.status != exitDenied || !strings.Contains(got.stderr, "denied: Pod o-") || !strings.Contains(got.stderr, tc.pod+": poddefault.sallyport.io: ") {
				t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
			}
		})
	}
}

func TestPodsOfAWorkloadAreInItsNamespace(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: o%s}, spec: {template: {metadata: {labels: {proxy: 'true'}}, " + oneContainer + "}}}"
	with := file(t, "with.yaml", strings.Replace(podDefaultYAML, "name: proxy\nspec", "name: proxy\n  namespace: team-a\nspec", 1))
	for namespace, status := range map[string]int{", namespace: team-a": exitDenied, ", namespace: team-b": exitOK} {
		if got := sallyportWith(t, strings.Replace(deployment, "%s", namespace, 1), "review", "-f", "-", "--with", with); got.status != status {
			t.Errorf("%q: status %d, stderr:\n%s", namespace, got.status, got.stderr)
		}
	}
	if got := sallyportWith(t, strings.Replace(deployment, "%s", "", 1), "review", "-f", "-", "--with", with, "-n", "team-a"); got.status != exitDenied {
		t.Errorf("by the flag: status %d, stderr:\n%s", got.status, got.stderr)
	}
}

func TestPodsThatCouldNotBeLookedAtAreNoSuccess(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a Deployment without a template":    {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: o}, spec: {}}", "Deployment o: it makes no pods: it has no pod template at spec.template"},
		"a template without a spec":          {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: o}, spec: {template: {metadata: {}}}}", "spec.template.spec is missing"},
		"a TrainJob without its runtime":     {"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: o}, spec: {runtimeRef: {name: torch}}}", "the ClusterTrainingRuntime torch, which was not given"},
		"a Workspace without its kind":       {"{apiVersion: kubeflow.org/v1beta1, kind: Workspace, metadata: {name: o}, spec: {kind: jupyterlab}}", "the WorkspaceKind jupyterlab, which was not given"},
		"a WorkspaceKind without options":    {"{apiVersion: kubeflow.org/v1beta1, kind: WorkspaceKind, metadata: {name: o}, spec: {podTemplate: {}}}", "it makes no pods: the option"},
		"containers outside of a template":   {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: o}, spec: {templates: [{container: {image: x}}]}}", "spec.templates[0].container is a container outside of a pod template"},
		"a list of containers":               {"{apiVersion: example.com/v1, kind: Farm, metadata: {name: o}, spec: {predictor: {containers: [{image: x}]}}}", "spec.predictor.containers[0] is a container outside"},
		"a template that is of another type": {"{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {name: o}, spec: {template: {spec: {containers: no}}}}", "spec.template.spec.containers: want a sequence"},
		"an unknown field in a Notebook's pod": {
			"{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {name: o}, spec: {template: {spec: {containers: [{name: a, imagePullPolcy: Always}]}}}}",
			`unknown field "spec.template.spec.containers[0].imagePullPolcy": did you mean imagePullPolicy?`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyportWith(t, otherYAML+"---\n"+tc.text, "review", "-f", "-")
			if got.status != exitError || !strings.Contains(got.stderr, tc.want) || strings.Contains(got.stdout, " o: allowed") {
				t.Errorf("status %d, stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
			}
		})
	}
}

func TestControllersGiveTheirPodsNamesAndLabels(t *testing.T) {
	pods := map[string]*corev1.Pod{}
	out := sallyport(t, workloadArgs("-o", "yaml")...)
	for _, text := range strings.Split(out.stdout, "\n---\n") {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		pods[pod.Name+pod.GenerateName] = pod
	}
	for name, want := range map[string]labels.Set{
		"db-3":          {"app": "db", "statefulset.kubernetes.io/pod-name": "db-3", "apps.kubernetes.io/pod-index": "3"},
		"agent-":        {"app": "agent", "pod-template-generation": "1"},
		"once-00000-":   {"job-name": "once-00000", "batch.kubernetes.io/job-name": "once-00000"},
		"lab-0":         {"proxy": "true", "notebook-name": "lab", "statefulset": "lab", "statefulset.kubernetes.io/pod-name": "lab-0"},
		"mpi-launcher-": {"training.kubeflow.org/job-role": "launcher", "training.kubeflow.org/operator-name": "mpi-operator", "job-name": "mpi-launcher"},
		"mpi-worker-0":  {"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": "0", "training.kubeflow.org/job-name": "mpi"},
		"ws-lab2-00000-0": {
			"notebooks.kubeflow.org/workspace-name": "lab2", "statefulset": "lab2", "statefulset.kubernetes.io/pod-name": "ws-lab2-00000-0", "proxy": "true", "tier": "lab",
		},
		"train-node-0-": {
			"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "node", "batch.kubernetes.io/job-name": "train-node-0",
		},
	} {
		pod := pods[name]
		if pod == nil {
			t.Errorf("there is no pod %s among %v", name, pods)
			continue
		}
		if !want.AsSelector().Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s has the labels %v", name, pod.Labels)
		}
	}
	db := pods["db-3"].Spec
	if db.Hostname != "db-3" || db.Subdomain != "db" || len(db.Volumes) != 2 || db.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-3" || db.Volumes[1].Name != "tmp" {
		t.Errorf("a pod of the StatefulSet is %+v", db)
	}
	var keys []string
	for _, toleration := range pods["agent-"].Spec.Tolerations {
		keys = append(keys, toleration.Key)
	}
	if len(keys) != 8 || keys[0] != "pool" || keys[7] != "node.kubernetes.io/network-unavailable" {
		t.Errorf("a pod of the DaemonSet tolerates %v", keys)
	}
	if lab := pods["lab-0"]; lab.Spec.Containers[0].WorkingDir == "" || *lab.Spec.SecurityContext.FSGroup != 100 || lab.Annotations["notebooks.kubeflow.org/x"] != "" || lab.Annotations["example.com/team"] != "a" {
		t.Errorf("a pod of the Notebook is %+v", lab)
	}
}

func TestAWorkspaceKindIsReviewedWithItsDefaultOptions(t *testing.T) {
	got := sallyport(t, "review", "-f", "testdata/workloads/runtime.yaml", "--with", "testdata/workloads/accounts.yaml", "-o", "yaml")
	if got.status != exitOK || !strings.Contains(got.stdout, "name: ws-00000-00000-0") || !strings.Contains(got.stdout, "image: scipy:1") || !strings.Contains(got.stdout, "proxy: \"false\"") {
		t.Errorf("status %d\n%s\n%s", got.status, got.stdout, got.stderr)
	}
}

func TestEditsOfWorkloadsKeepWhatTheyDoNotKnow(t *testing.T) {
	const sts = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {volumeClaimTemplates: [{metadata: {name: d}}], template: {spec: {newer: {a: 9007199254740993}, containers: [{name: a, newer: x}]}}}}"
	out := sallyportWith(t, sts, "review", "-f", "-", "-o", "json", "--validate", "ignore").wantOK(t)
	for _, want := range []string{"9007199254740993", `"newer": "x"`, `"claimName": "d-s-0"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
}
