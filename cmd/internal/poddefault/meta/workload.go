// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// timestampDigits is the least number of digits at the end of the name of a CronJob's Job:
// minutes since 1970.
const timestampDigits = 8

// A Workload is what a pod belongs to, in the pod's namespace.
type Workload struct {
	APIVersion, Kind, Name string

	// Unit identifies it in rollouts, by the kind of the pod's owner: changing it changes
	// which workloads are within a percentage.
	Unit string
}

// OfPod returns the workload of a pod: the Deployment of its ReplicaSet, the CronJob of
// its Job, its controller, or the pod by its name or generateName. Names of owners do not
// change when a workload gets a new template.
func OfPod(pod *Metadata, b *Budget) Workload {
	if pod.Workload.Unit == "" {
		controller := controllerOf(pod, b) // it reads the name, too
		pod.Workload = WorkloadBy(controller, pod.Name, pod.Labels.Get(appsv1.DefaultDeploymentUniqueLabelKey))
	}
	return pod.Workload
}

// WorkloadOf identifies the workload of a pod for rollouts and exemptions, within the pod's
// namespace.
func WorkloadOf(pod *metav1.ObjectMeta) string {
	var controller Workload
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		controller = Workload{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}
	}
	return WorkloadBy(controller, cmp.Or(pod.Name, pod.GenerateName), pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]).Unit
}

// WorkloadBy returns the workload of a pod by its controller, which may have no name, its
// own name, and the hash of its template.
func WorkloadBy(w Workload, pod, hash string) Workload {
	if w.Name == "" {
		w = Workload{APIVersion: "v1", Kind: "Pod", Name: pod}
	}
	owner := w.Kind
	switch owner {
	case "ReplicaSet":
		if hash != "" {
			w.Kind, w.Name = "Deployment", strings.TrimSuffix(w.Name, "-"+hash)
		}
	case "Job":
		if short := strings.TrimRight(w.Name, "0123456789"); len(w.Name)-len(short) >= timestampDigits {
			w.Kind, w.Name = "CronJob", strings.TrimSuffix(short, "-")
		}
	}
	w.Unit = owner + "/" + w.Name
	return w
}

// controllerOf returns the pod's controller, without a name if it has none.
func controllerOf(pod *Metadata, b *Budget) (controller Workload) {
	pod.Complete()
	b.Scans(len(pod.Owners))
	owners := rawjson.NewReader(pod.Owners)
	owners.Array(func(int) {
		var version, kind, name []byte
		controls := false
		owners.Object(func(field []byte) {
			switch string(field) {
			case "apiVersion":
				version, _ = owners.String()
			case "kind":
				kind, _ = owners.String()
			case "name":
				name, _ = owners.String()
			case "controller":
				controls = owners.Kind() == 't'
			}
		})
		if controls {
			controller = Workload{APIVersion: string(version), Kind: string(kind), Name: string(name)}
			owners.Stop()
		}
	})
	return controller
}
