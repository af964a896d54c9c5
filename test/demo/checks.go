// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What examples/poddefaults/gcp-credentials.yaml asks for, written out once more:
// a check that read it from there would agree with any error in it.
var (
	wantedVolume = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "user-gcp-sa"}}
	wantedMount  = corev1.VolumeMount{Name: "gcp-credentials", MountPath: "/secret/gcp", ReadOnly: true}
	wantedEnv    = corev1.EnvVar{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: "/secret/gcp/user-gcp-sa.json"}
)

// injectedInto tells what is missing in a pod.
func injectedInto(pod *corev1.Pod) (missing []string) {
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == wantedMount.Name && v.Secret != nil && v.Secret.SecretName == wantedVolume.Secret.SecretName
	}) {
		missing = append(missing, "the volume "+wantedMount.Name)
	}
	for _, container := range pod.Spec.Containers {
		if !holds(container.VolumeMounts, wantedMount) {
			missing = append(missing, fmt.Sprintf("the mount %s in container %s", wantedMount.MountPath, container.Name))
		}
		if !holds(container.Env, wantedEnv) {
			missing = append(missing, fmt.Sprintf("the variable %s in container %s", wantedEnv.Name, container.Name))
		}
	}
	return missing
}

func (d *demo) checkStored(ctx context.Context, stored map[string]any) error {
	pod, err := toPod(stored)
	if err != nil {
		return err
	}
	missing := injectedInto(pod)
	d.check(len(pod.Spec.Containers) == 2 && len(missing) == 0,
		"volume in the pod, mount and variable in both containers%s", but(missing))

	current, err := d.currentRevision(ctx)
	if err != nil {
		return err
	}
	// The resource version may be an earlier one of the PodDefault's: a status has been written since.
	resourceVersion := pod.Annotations[markPrefix+podDefaultName]
	d.check(resourceVersion != "" && pod.Annotations[revisions] == podDefaultName+"@"+current,
		"the pod carries the mark of the PodDefault, at resource version %s, with its current revision %s", resourceVersion, current)
	d.check(strings.Contains(pod.Annotations[listAnnotation], podDefaultName),
		"the annotation %s names it too", listAnnotation)
	return nil
}

// currentRevision waits until the status of the PodDefault has it.
func (d *demo) currentRevision(ctx context.Context) (revision string, err error) {
	err = d.server.Await(ctx, soon, "the status of PodDefault "+podDefaultName, func(ctx context.Context) error {
		pd, err := d.cluster.objects.Resource(podDefaults).Namespace(namespace).Get(ctx, podDefaultName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if revision, _, err = unstructured.NestedString(pd.Object, "status", "currentRevision"); err == nil && revision == "" {
			err = errors.New("it has no current revision")
		}
		return err
	})
	return revision, err
}

// checkUnlabelled creates the same pod without the label, and one without any.
func (d *demo) checkUnlabelled(ctx context.Context, notebook map[string]any) error {
	pod := copyOf(notebook)
	meta := object(pod["metadata"])
	meta["name"] = "unlabelled-0"
	delete(object(meta["labels"]), "add-gcp-secret")
	stored, err := d.cluster.createPod(ctx, namespace, pod, false)
	if err != nil {
		return err
	}
	c, err := d.compare(ctx, pod, stored)
	if err != nil {
		return err
	}
	d.check(c.changedBy(webhook) == 0, "a pod without the label is stored as if there were no webhook")
	return nil
}

// checkAgain sends the stored pod once more, as a backup tool would.
func (d *demo) checkAgain(ctx context.Context, stored map[string]any) error {
	pod := copyOf(stored)
	delete(pod, "status")
	meta := object(pod["metadata"])
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		delete(meta, name)
	}
	meta["name"] = "restored-0"
	restored, err := d.cluster.createPod(ctx, namespace, pod, true)
	if err != nil {
		return err
	}
	c, err := d.compare(ctx, pod, restored)
	if err != nil {
		return err
	}
	d.check(c.changedBy(webhook) == 0, "the stored pod, sent again, is not changed again")
	return nil
}

// checkReview asks the command for the same answer without the cluster.
func (d *demo) checkReview(ctx context.Context) error {
	args := []string{"review", "-f", notebookFile, "--with", podDefaultFile, "-o", "yaml"}
	started := time.Now()
	out, err := exec.CommandContext(ctx, d.command, args...).Output()
	took := time.Since(started)
	if err != nil {
		return fmt.Errorf("sallyport %s: %w", strings.Join(args, " "), err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(out, pod); err != nil {
		return fmt.Errorf("sallyport %s: %w", strings.Join(args, " "), err)
	}
	missing := injectedInto(pod)
	d.check(len(missing) == 0, "`sallyport review` gives the same answer without a cluster, in %d ms%s", took.Milliseconds(), but(missing))
	return nil
}

func holds[T any](elements []T, wanted T) bool {
	return slices.ContainsFunc(elements, func(element T) bool { return reflect.DeepEqual(element, wanted) })
}

func but(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return "; missing: " + strings.Join(missing, ", ")
}
