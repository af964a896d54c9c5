// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Kind is a kind whose controller creates pods, or the pod itself.
type Kind struct {
	Name         string
	GroupVersion string // "v1", "apps/v1"
	Resource     string
	short        []string
	// template is the path of the pod template; "*" stands for each member or element.
	// It is nil for the pod itself.
	template []string
	// finish sets the name and labels that the controller gives a pod.
	finish func(*draft) error
}

// Kinds returns the kinds with known templates. The pod is first.
func Kinds() []Kind { return kinds }

var kinds = []Kind{
	{"Pod", "v1", "pods", []string{"po"}, nil, nil},
	{"Deployment", "apps/v1", "deployments", []string{"deploy"}, []string{"spec", "template"}, finishDeployment},
	{"StatefulSet", "apps/v1", "statefulsets", []string{"sts"}, []string{"spec", "template"}, finishStatefulSet},
	{"DaemonSet", "apps/v1", "daemonsets", []string{"ds"}, []string{"spec", "template"}, finishDaemonSet},
	{"ReplicaSet", "apps/v1", "replicasets", []string{"rs"}, []string{"spec", "template"}, finishGenerated},
	{"ReplicationController", "v1", "replicationcontrollers", []string{"rc"}, []string{"spec", "template"}, finishGenerated},
	{"Job", "batch/v1", "jobs", nil, []string{"spec", "template"}, finishJob},
	{"CronJob", "batch/v1", "cronjobs", []string{"cj"}, []string{"spec", "jobTemplate", "spec", "template"}, finishCronJob},
	{"PodTemplate", "v1", "podtemplates", nil, []string{"template"}, finishGenerated},

	{"Notebook", "kubeflow.org/v1", "notebooks", nil, []string{"spec", "template"}, finishNotebook},
	{"Workspace", workspaceVersion, "workspaces", nil, []string{"spec", "podTemplate"}, finishWorkspace}, // from its WorkspaceKind: see workspace.go
	{"MPIJob", "kubeflow.org/v2beta1", "mpijobs", nil, []string{"spec", "mpiReplicaSpecs", "*", "template"}, finishMPIReplica},
	{"JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", nil, []string{"spec", "replicatedJobs", "*", "template", "spec", "template"}, finishJobSet},
	{"TrainJob", trainerVersion, "trainjobs", nil, runtimeTemplate, finishJobSet}, // from its runtime: see trainjob.go
}

// BuiltIn reports whether the kind is part of Kubernetes.
func (k Kind) BuiltIn() bool { return !strings.Contains(k.GroupVersion, ".") }

// kindOf finds an object's kind in any version, or nil.
func kindOf(gvk schema.GroupVersionKind) *Kind {
	for i := range kinds {
		known := &kinds[i]
		if group, err := schema.ParseGroupVersion(known.GroupVersion); err == nil && known.Name == gvk.Kind && group.Group == gvk.Group {
			return known
		}
	}
	return nil
}

// Path returns the API path of the collection, of all namespaces if namespace is empty.
func (k Kind) Path(namespace string) string {
	prefix := "/apis/" + k.GroupVersion
	if k.GroupVersion == "v1" {
		prefix = "/api/v1"
	}
	if namespace == "" {
		return prefix + "/" + k.Resource
	}
	return prefix + "/namespaces/" + namespace + "/" + k.Resource
}

// Named reports whether a word names the kind, as in kubectl.
func (k Kind) Named(word string) bool {
	word = strings.ToLower(word)
	if word == strings.ToLower(k.Name) || word == k.Resource {
		return true
	}
	for _, short := range k.short {
		if word == short {
			return true
		}
	}
	return false
}
