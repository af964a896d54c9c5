// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Where the functions of a webhook author are served, by the library and by
// controller-runtime.
const (
	addPath      = "/add"
	nothingPath  = "/nothing"
	validatePath = "/validate"
)

// An adder adds an environment variable and a mount to each container, and a volume.
type adder struct{ spec *v1alpha1.PodDefaultSpec }

// newAdder adds what the first PodDefault has, for any pod.
func newAdder() (adder, error) {
	typical, err := typicalPodDefaults()
	if err != nil {
		return adder{}, err
	}
	return adder{&typical[0].Spec}, nil
}

// Default has the signature of a defaulter of either side.
func (a adder) Default(_ context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env = append(c.Env, a.spec.Env...)
		c.VolumeMounts = append(c.VolumeMounts, a.spec.VolumeMounts...)
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, a.spec.Volumes...)
	return nil
}

// idle is a defaulter that finds nothing to do.
type idle struct{}

func (idle) Default(context.Context, *corev1.Pod) error { return nil }

// checkImages is what a validator may do.
func checkImages(_ context.Context, pod *corev1.Pod) error {
	var errs field.ErrorList
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Image == "" {
			errs = append(errs, field.Required(field.NewPath("spec", "containers").Index(i).Child("image"), "name one"))
		}
	}
	return errs.ToAggregate()
}
