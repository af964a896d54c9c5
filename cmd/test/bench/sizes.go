// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Cases the limits refer to.
const (
	pod128KB        = "pod-128-kb"
	variables1000   = "variables-1000"
	notebook20Match = "notebook-20-match"
)

// matchesLabel says by how many of the PodDefaults of the stage a pod is selected.
const matchesLabel = "bench-matches"

// maxMatches is how many such PodDefaults there are.
const maxMatches = 20

// A largePod is the pod of a recording with more in it, as its review would be.
type largePod struct {
	recording string
	bytes     int    // that the review has at least; 0: as many as follow from the rest
	variables int    // environment variables that the first container gets
	matches   int    // PodDefaults that select the pod
	rollout   string // value of rolloutLabel; empty: none
}

var largePods = map[string]largePod{
	"pod of 2 KB":              {recording: "minimal", bytes: 2 << 10, matches: 1},
	"pod of 8 KB":              {recording: "notebook", bytes: 8 << 10, matches: 1},
	"pod of 32 KB":             {recording: "notebook", bytes: 32 << 10, matches: 1},
	"pod of 128 KB":            {recording: "notebook", bytes: 128 << 10, matches: 1},
	"pod with 1,000 variables": {recording: "notebook", variables: 1000, matches: 2},
	"pod for 20":               {recording: "notebook", matches: maxMatches},

	"pod for " + rolloutNone:       {recording: "notebook", rollout: rolloutNone},
	"pod for " + rolloutInProgress: {recording: "notebook", rollout: rolloutInProgress},
	// For servers that know nothing of these labels.
	"selecting pod with 1,000 variables": {recording: "notebook-selecting", variables: 1000},
}

// sizesStage has pods that are larger than most, and that several PodDefaults select.
func sizesStage(few int) stage {
	row := func(id, name, review string) benchCase {
		return benchCase{id: id, name: name, review: review, path: podDefaultPath, adds: matching(largePods[review].matches)}
	}
	return stage{
		part:        partSizes,
		podDefaults: few,
		servers:     []string{floorName, sallyportName},
		prepare:     createMatching,
		cases: []benchCase{
			row("pod-2-kb", "pod of 2 KB, 1 matches", "pod of 2 KB"),
			row("pod-8-kb", "pod of 8 KB, 1 matches", "pod of 8 KB"),
			row("pod-32-kb", "pod of 32 KB, 1 matches", "pod of 32 KB"),
			row(pod128KB, "pod of 128 KB, 1 matches", "pod of 128 KB"),
			row(variables1000, "notebook pod with 1,000 more variables, 2 match", "pod with 1,000 variables"),
			row(notebook20Match, "notebook pod, 20 match", "pod for 20"),
		},
	}
}

// matching are the names of the PodDefaults that a pod with the label for n selects.
func matching(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("matching-%02d", i)
	}
	return names
}

// createMatching creates the PodDefaults of the stage.
func createMatching(ctx context.Context, s *site, _ schedule, progress progress) error {
	progress.sayf("creating %d PodDefaults that one pod selects", maxMatches)
	for i, name := range matching(maxMatches) {
		var numbers []string // of matches, that include this one
		for n := i + 1; n <= maxMatches; n++ {
			numbers = append(numbers, strconv.Itoa(n))
		}
		path := "/etc/" + name
		pd := &v1alpha1.PodDefault{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.PodDefaultSpec{
				Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: matchesLabel, Operator: metav1.LabelSelectorOpIn, Values: numbers},
				}},
				Env:          []corev1.EnvVar{{Name: fmt.Sprintf("MATCHING_%02d", i), Value: path + "/credentials.json"}},
				Volumes:      []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}},
				VolumeMounts: []corev1.VolumeMount{{Name: name, MountPath: path, ReadOnly: true}},
			},
		}
		if err := s.cp.objects.Create(ctx, pd); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating PodDefault %s: %w", name, err)
		}
	}
	return nil
}

// loadLarge makes the review of a large pod.
func loadLarge(name string) (review, error) {
	large := largePods[name]
	recorded, err := loadReview(large.recording)
	if err != nil {
		return review{}, err
	}
	envelope, pod := &admissionv1.AdmissionReview{}, &corev1.Pod{}
	if err := errors.Join(json.Unmarshal(recorded.body, envelope), json.Unmarshal(recorded.object, pod)); err != nil {
		return review{}, err
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if large.matches > 0 {
		pod.Labels[matchesLabel] = strconv.Itoa(large.matches)
	}
	if large.rollout != "" {
		pod.Labels[rolloutLabel] = large.rollout
	}
	for i := range large.variables {
		addVariable(&pod.Spec.Containers[0], i)
	}
	encode := func() (body, object []byte, err error) {
		if object, err = json.Marshal(pod); err != nil {
			return nil, nil, err
		}
		envelope.Request.Object.Raw = object
		body, err = json.Marshal(envelope)
		return body, object, err
	}
	body, object, err := encode()
	if err != nil {
		return review{}, err
	}
	for i := 0; len(body) < large.bytes; i++ {
		// In steps of at most a sixteenth of what is missing: nobody needs it to the byte.
		for range max(1, (large.bytes-len(body))/16/bytesOfMore) {
			more(pod, i)
			i++
		}
		if body, object, err = encode(); err != nil {
			return review{}, err
		}
	}
	return review{name, body, recorded.uid, object}, nil
}

// bytesOfMore is about what more adds to a review.
const bytesOfMore = 320

// more gives a pod a variable, and a volume that is mounted.
func more(pod *corev1.Pod, i int) {
	c := &pod.Spec.Containers[i%len(pod.Spec.Containers)]
	addVariable(c, i)
	volume := fmt.Sprintf("settings-%d", i)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: volume}, DefaultMode: new(int32(420))},
	}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, ReadOnly: true, MountPath: "/etc/settings/" + volume})
}

func addVariable(c *corev1.Container, i int) {
	c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_%d_ADDRESS", i), Value: fmt.Sprintf("https://service-%d.team-vision.svc:8443/", i)})
}
