// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// trainerVersion is the API version of Kubeflow Trainer.
const trainerVersion = "trainer.kubeflow.org/v1alpha1"

// runtimeTemplate is the path of the templates for a TrainJob's pods in a runtime.
var runtimeTemplate = []string{"spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"}

// runtimeOf returns the runtime of a TrainJob, a separate object that describes its
// pods.
func runtimeOf(o *manifest.Object, find Finder) (*manifest.Object, error) {
	var ref struct {
		APIGroup string `json:"apiGroup"`
		Kind     string `json:"kind"`
		Name     string `json:"name"`
	}
	if err := decodeField(o, &ref, "spec", "runtimeRef"); err != nil {
		return nil, err
	}
	kind, namespace := cmp.Or(ref.Kind, "ClusterTrainingRuntime"), ""
	if kind == "TrainingRuntime" {
		namespace = o.Namespace
	}
	found, err := find(trainerVersion, kind, namespace, ref.Name)
	if err == nil && found == nil {
		err = o.ErrorAt("/spec/runtimeRef", fmt.Sprintf(
			"%s: its pods are described by the %s %s, which was not given: add the output of 'kubectl get %s.%s %s -o yaml'", o.Title(), kind, ref.Name, kind, "trainer.kubeflow.org", ref.Name))
	}
	return found, err
}
