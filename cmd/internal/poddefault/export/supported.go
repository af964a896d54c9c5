// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Fields returns the JSON names of the spec fields that can be exported. Of
// conflictPolicy and mode, only the values Kubeflow, Deny and Enforce can.
func Fields() []string {
	return []string{
		"activeDeadlineSeconds", "annotations", "args", "automountServiceAccountToken", "command", "conflictPolicy", "desc", "dnsPolicy",
		"enableServiceLinks", "env", "envFrom", "hostAliases", "hostUsers", "imagePullSecrets", "initContainers", "labels", "mode",
		"nodeSelector", "priority", "readinessGates", "resourceClaims", "revisionHistoryLimit", "schedulerName", "schedulingGates", "selector",
		"serviceAccountName", "shareProcessNamespace", "sidecars", "terminationMessagePolicy", "tolerations", "volumeMounts", "volumes",
	}
}

// largestNumber is the largest integer that the API server's conversion from CEL to
// JSON preserves as a number.
const largestNumber = 1<<53 - 1

// unsupported returns every reason why an object cannot be exported.
func unsupported(pd *kubeflowv1alpha1.PodDefault) error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("PodDefault %s/%s: "+format, append([]any{pd.Namespace, pd.Name}, args...)...))
	}
	if pd.Name == "" {
		refuse("metadata.name: it is needed, since pods are marked with it")
	}
	if pd.Namespace == "" {
		refuse("metadata.namespace: it is needed, since a policy belongs to no namespace")
	}
	if problem := plan.Compile(pd).Problem(); problem != nil {
		refuse("it can never work: %s", strings.ReplaceAll(problem.Error(), "\n", "; "))
	}
	spec := &pd.Spec
	set, _ := tree(spec).(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(set)) {
		if !slices.Contains(Fields(), field) && !empty(set[field]) {
			refuse("spec.%s: policies cannot do this: leave it out, or use the webhook", field)
		}
	}
	if policy := meta.PolicyOf(spec); policy != "" && policy != kubeflowv1alpha1.ConflictDeny {
		refuse("spec.conflictPolicy: %s: policies can only deny: leave it out, or use the webhook", policy)
	}
	if spec.Mode != "" && spec.Mode != kubeflowv1alpha1.ModeEnforce {
		refuse("spec.mode: %s: policies cannot warn: leave the object out, or use the webhook", spec.Mode)
	}
	for _, volume := range strayVolumes(spec) {
		refuse("spec.volumes: the volume %s is mounted but not defined: the webhook leaves the object out where the volume is missing, and a policy cannot", volume)
	}
	for _, key := range []string{meta.ExcludeAnnotation, meta.MirrorAnnotation} {
		if _, ok := spec.Annotations[key]; ok {
			refuse("spec.annotations[%s]: with this annotation the policies would skip the pod when they run again", key)
		}
	}
	if tooLarge(set) {
		refuse("spec: it has a number beyond %d, which the API server's CEL turns into a string", largestNumber)
	}
	return errors.Join(errs...)
}

func empty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case bool:
		return !value
	}
	return value == nil
}

func tooLarge(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), tooLarge)
	case []any:
		return slices.ContainsFunc(value, tooLarge)
	case json.Number:
		n, err := value.Int64()
		return err != nil || n > largestNumber || n < -largestNumber
	}
	return false
}

// strayVolumes returns the volumes that the object mounts but does not contain.
func strayVolumes(spec *kubeflowv1alpha1.PodDefaultSpec) []string {
	stray := map[string]bool{}
	for _, m := range spec.VolumeMounts {
		stray[m.Name] = true
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Sidecars} {
		for i := range containers {
			for _, m := range containers[i].VolumeMounts {
				stray[m.Name] = true
			}
			for _, d := range containers[i].VolumeDevices {
				stray[d.Name] = true
			}
		}
	}
	for i := range spec.Volumes {
		delete(stray, spec.Volumes[i].Name)
	}
	return slices.Sorted(maps.Keys(stray))
}

// together returns every reason why the objects of a namespace, given in order of
// application, cannot be exported together.
func together(objects []*kubeflowv1alpha1.PodDefault) error {
	var errs []error
	for i, a := range objects {
		for _, key := range slices.Sorted(maps.Keys(a.Spec.Labels)) {
			for _, b := range objects {
				if mentions(&b.Spec, key) {
					errs = append(errs, fmt.Errorf("PodDefault %s/%s: spec.labels[%s]: the selector of %s looks at this label; a policy does not select again by labels that it adds",
						a.Namespace, a.Name, key, b.Name))
				}
			}
		}
		for _, m := range a.Spec.VolumeMounts {
			if j := slices.IndexFunc(objects, takesToken); m.MountPath == tokenMountPath && j >= 0 {
				errs = append(errs, fmt.Errorf("PodDefault %s/%s: spec.volumeMounts: %s is where the token is that %s takes away, which a policy does later than the webhook",
					a.Namespace, a.Name, tokenMountPath, objects[j].Name))
			}
		}
		for _, b := range objects[i+1:] {
			if a.Name == b.Name {
				errs = append(errs, fmt.Errorf("PodDefault %s/%s: it was given twice", a.Namespace, a.Name))
				continue
			}
			for _, place := range disagreements(a, b) {
				errs = append(errs, fmt.Errorf("PodDefaults %s/%s and %s: %s: they want different things, and a pod may be selected by both: change one, or make their selectors exclude each other",
					a.Namespace, a.Name, b.Name, place))
			}
		}
	}
	return errors.Join(errs...)
}

// mentions reports whether a selector depends on the key. A selector for a label that
// its own object adds would not change once it is added, but is unlikely.
func mentions(spec *kubeflowv1alpha1.PodDefaultSpec, key string) bool {
	if _, ok := spec.Selector.MatchLabels[key]; ok {
		return true
	}
	for _, r := range spec.Selector.MatchExpressions {
		if r.Key == key {
			return true
		}
	}
	return false
}

func takesToken(pd *kubeflowv1alpha1.PodDefault) bool {
	token := pd.Spec.AutomountServiceAccountToken
	return token != nil && !*token
}

// disagreements returns the places where both objects conflict, whatever the order. If
// neither has a conflict policy there is an order: the last service account and the
// first command win.
func disagreements(a, b *kubeflowv1alpha1.PodDefault) []string {
	places := append(compare.Overlap(a, b), compare.Overlap(b, a)...)
	slices.Sort(places)
	places = slices.Compact(places)
	if meta.PolicyOf(&a.Spec) == "" && meta.PolicyOf(&b.Spec) == "" {
		ordered := []string{"serviceAccountName", "command", "args"}
		places = slices.DeleteFunc(places, func(place string) bool { return slices.Contains(ordered, place) })
	}
	return places
}
