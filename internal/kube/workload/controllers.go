// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Stand-ins for values that are unknown in advance: the random end of a name, a UID,
// the time in the name of a CronJob's Job.
const (
	standInName = "00000"
	standInUID  = "00000000-0000-0000-0000-000000000000"
	standInTime = "00000000"
)

// finishGenerated is for controllers that use generateName.
func finishGenerated(p *draft) error {
	p.generateName = p.ownerName + "-"
	return nil
}

// finishDeployment finishes a pod like a Deployment's ReplicaSet.
func finishDeployment(p *draft) error {
	hash := p.hash()
	p.label(appsv1.DefaultDeploymentUniqueLabelKey, hash)
	p.generateName = p.ownerName + "-" + hash + "-"
	p.controlledBy(appsv1.SchemeGroupVersion.String(), "ReplicaSet", p.ownerName+"-"+hash)
	return nil
}

// finishStatefulSet makes the first pod, with its name, network identity and volumes.
func finishStatefulSet(p *draft) error {
	var spec struct {
		ServiceName string `json:"serviceName"`
		Ordinals    struct {
			Start int `json:"start"`
		} `json:"ordinals"`
		Claims []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"volumeClaimTemplates"`
	}
	if err := p.ownField(&spec, "spec"); err != nil {
		return err
	}
	p.becomeOrdinal(spec.Ordinals.Start)
	if err := p.setField("hostname", p.name); err != nil {
		return err
	}
	if spec.ServiceName != "" {
		if err := p.setField("subdomain", spec.ServiceName); err != nil {
			return err
		}
	}
	if len(spec.Claims) == 0 {
		return nil
	}
	var volumes, all []jsontext.Value
	if err := p.field("volumes", &volumes); err != nil {
		return err
	}
	claimed := map[string]bool{}
	for _, claim := range spec.Claims {
		claimed[claim.Metadata.Name] = true
		all = append(all, jsontext.Value(fmt.Sprintf(`{"name":%q,"persistentVolumeClaim":{"claimName":%q}}`, claim.Metadata.Name, claim.Metadata.Name+"-"+p.name)))
	}
	for _, volume := range volumes {
		if !claimed[ElementName(volume, "")] {
			all = append(all, volume)
		}
	}
	return p.setField("volumes", all)
}

// becomeOrdinal gives the pod its ordinal in a StatefulSet.
func (p *draft) becomeOrdinal(ordinal int) {
	p.name = p.ownerName + "-" + strconv.Itoa(ordinal)
	p.label(appsv1.StatefulSetPodNameLabel, p.name)
	p.label(appsv1.PodIndexLabel, strconv.Itoa(ordinal))
	p.label(appsv1.ControllerRevisionHashLabelKey, p.ownerName+"-"+p.hash())
}

// finishDaemonSet adds the tolerations of DaemonSet pods. It omits the affinity to one
// node that each pod gets.
func finishDaemonSet(p *draft) error {
	p.generateName = p.ownerName + "-"
	p.label(appsv1.ControllerRevisionHashLabelKey, p.hash())
	generation := p.owner.Annotations[appsv1.DeprecatedTemplateGeneration]
	p.label("pod-template-generation", cmp.Or(generation, "1"))
	tolerations := []corev1.Toleration{}
	var hostNetwork bool
	if err := p.field("tolerations", &tolerations); err != nil {
		return err
	}
	if err := p.field("hostNetwork", &hostNetwork); err != nil {
		return err
	}
	add := func(key string, effect corev1.TaintEffect) {
		wanted := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
		same := func(t corev1.Toleration) bool { return t.MatchToleration(&wanted) }
		if i := slices.IndexFunc(tolerations, same); i >= 0 {
			tolerations[i] = wanted
		} else {
			tolerations = append(tolerations, wanted)
		}
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		add(key, corev1.TaintEffectNoSchedule)
	}
	if hostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return p.setField("tolerations", tolerations)
}

// finishJob adds the labels that the API server adds to a Job's template, and for an
// indexed Job the index of the first pod.
func finishJob(p *draft) error {
	return p.becomeOfJob(p.ownerName, string(p.owner.UID), "spec")
}

func finishCronJob(p *draft) error {
	return p.becomeOfJob(p.ownerName+"-"+standInTime, "", "spec", "jobTemplate", "spec")
}

// becomeOfJob makes a pod of the named Job, whose spec is at the tokens of the
// template's holder.
func (p *draft) becomeOfJob(job, uid string, spec ...string) error {
	var of struct {
		ManualSelector bool                   `json:"manualSelector"`
		CompletionMode batchv1.CompletionMode `json:"completionMode"`
	}
	if err := decodeField(p.holder, &of, spec...); err != nil {
		return err
	}
	if !of.ManualSelector {
		uid = cmp.Or(uid, standInUID)
		for key, value := range map[string]string{"job-name": job, batchv1.JobNameLabel: job, "controller-uid": uid, batchv1.ControllerUidLabel: uid} {
			if _, there := p.labels[key]; !there {
				p.label(key, value)
			}
		}
	}
	p.generateName = job + "-"
	p.controlledBy(batchv1.SchemeGroupVersion.String(), "Job", job)
	if of.CompletionMode != batchv1.IndexedCompletion {
		return nil
	}
	p.generateName = job + "-0-"
	p.label(batchv1.JobCompletionIndexAnnotation, "0")
	p.annotations = maps.Clone(p.annotations)
	if p.annotations == nil {
		p.annotations = map[string]string{}
	}
	p.annotations[batchv1.JobCompletionIndexAnnotation] = "0"
	index := map[string]any{"name": "JOB_COMPLETION_INDEX", "valueFrom": map[string]any{
		"fieldRef": map[string]any{"fieldPath": "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
	}}
	for _, list := range []string{"initContainers", "containers"} {
		if err := p.eachContainer(list, func(_ int, c map[string]any) { addVariable(c, index) }); err != nil {
			return err
		}
	}
	if _, there := p.spec["hostname"]; !there {
		return p.setField("hostname", job+"-0")
	}
	return nil
}

// eachContainer edits the containers of a list, if it exists.
func (p *draft) eachContainer(list string, edit func(index int, container map[string]any)) error {
	var containers []map[string]any
	if err := p.field(list, &containers); err != nil || len(containers) == 0 {
		return err
	}
	for i, container := range containers {
		if container != nil {
			edit(i, container)
		}
	}
	return p.setField(list, containers)
}

// addVariable adds a variable unless the container already has one of its name.
func addVariable(container map[string]any, variable map[string]any) {
	env, _ := container["env"].([]any)
	for _, known := range env {
		if v, ok := known.(map[string]any); ok && v["name"] == variable["name"] {
			return
		}
	}
	container["env"] = append(slices.Clip(env), variable)
}

// finishNotebook finishes a pod like Kubeflow's notebook controller, which creates a
// StatefulSet. The pod gets the Notebook's labels, and its annotations except those of
// kubectl or about notebooks. The template's own metadata is ignored.
func finishNotebook(p *draft) error {
	p.labels, p.annotations = nil, map[string]string{}
	p.label("statefulset", p.ownerName)
	p.label("notebook-name", p.ownerName)
	for key, value := range p.owner.Labels {
		p.label(key, value)
	}
	for key, value := range p.owner.Annotations {
		if !strings.Contains(key, "kubectl") && !strings.Contains(key, "notebook") {
			p.annotations[key] = value
		}
	}
	p.becomeOrdinal(0)
	p.controlledBy(appsv1.SchemeGroupVersion.String(), "StatefulSet", p.ownerName)
	if err := p.setField("hostname", p.name); err != nil {
		return err
	}
	prefix := map[string]any{"name": "NB_PREFIX", "value": "/notebook/" + p.namespace + "/" + p.ownerName}
	if err := p.eachContainer("containers", func(index int, c map[string]any) {
		if index > 0 {
			return
		}
		if dir, _ := c["workingDir"].(string); dir == "" {
			c["workingDir"] = "/home/jovyan"
		}
		if c["ports"] == nil {
			c["ports"] = []any{map[string]any{"containerPort": 8888, "name": "notebook-port", "protocol": "TCP"}}
		}
		addVariable(c, prefix)
	}); err != nil {
		return err
	}
	if context := p.spec["securityContext"]; context.Kind() != '{' {
		return p.setField("securityContext", map[string]any{"fsGroup": 100})
	}
	return nil
}

// finishMPIReplica finishes a pod like the MPI operator: the first worker, or the launcher, of
// which it makes a Job. The labels are those of kubeflow.org/v2beta1, and override the template's:
// pkg/apis/kubeflow/v2beta1/constants.go and pkg/controller in kubeflow/mpi-operator.
func finishMPIReplica(p *draft) error {
	const prefix = "training.kubeflow.org/"
	role := strings.ToLower(p.template.role)
	p.label(prefix+"job-name", p.ownerName)
	p.label(prefix+"operator-name", "mpi-operator")
	p.label(prefix+"job-role", role)
	if role == "launcher" {
		return p.becomeOfJob(p.ownerName+"-"+role, "", p.template.path...)
	}
	p.name = p.ownerName + "-" + role + "-0"
	p.label(prefix+"replica-index", "0")
	return nil
}

// finishJobSet makes the first pod of the first Job of a replicated Job.
func finishJobSet(p *draft) error {
	const prefix = "jobset.sigs.k8s.io/"
	job := p.ownerName + "-" + p.template.role + "-0"
	p.label(prefix+"jobset-name", p.ownerName)
	p.label(prefix+"replicatedjob-name", p.template.role)
	p.label(prefix+"job-index", "0")
	return p.becomeOfJob(job, "", p.template.path[:len(p.template.path)-1]...)
}
