// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

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
func (o *object) unsupported() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{o}, args...)...))
	}
	if o.Name() == "" {
		refuse("metadata.name: it is needed, since pods are marked with it")
	}
	if o.Namespace() == "" {
		refuse("metadata.namespace: it is needed, since a policy belongs to no namespace")
	}
	if problem := o.Problem(); problem != nil {
		refuse("it can never work: %s", strings.ReplaceAll(problem.Error(), "\n", "; "))
	}
	set, _ := plan.Decode(o.Spec()).(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(set)) {
		if !slices.Contains(Fields(), field) && !empty(set[field]) {
			refuse("spec.%s: policies cannot do this: leave it out, or use the webhook", field)
		}
	}
	if o.denies() && o.Policy != kubeflowv1alpha1.ConflictDeny {
		refuse("spec.conflictPolicy: %s: policies can only deny: leave it out, or use the webhook", o.Policy)
	}
	if o.Audit {
		refuse("spec.mode: %s: policies cannot warn: leave the object out, or use the webhook", kubeflowv1alpha1.ModeAudit)
	}
	for _, volume := range o.StrayMounts {
		refuse("spec.volumes: the volume %s is mounted but not defined: the webhook leaves the object out where the volume is missing, and a policy cannot", volume)
	}
	for _, annotation := range o.Annotations {
		if annotation.Key == meta.ExcludeAnnotation || annotation.Key == meta.MirrorAnnotation {
			refuse("spec.annotations[%s]: with this annotation the policies would skip the pod when they run again", annotation.Key)
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

// together returns every reason why the objects of a namespace, given in order of
// application, cannot be exported together.
func together(objects []*object) error {
	var errs []error
	refuse := func(o *object, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{o}, args...)...))
	}
	for i, a := range objects {
		for _, label := range a.Labels {
			for _, b := range objects {
				if b.selectsBy(label.Key) {
					refuse(a, "spec.labels[%s]: the selector of %s looks at this label; a policy does not select again by labels that it adds", label.Key, b.Name())
				}
			}
		}
		for _, m := range a.VolumeMounts {
			if j := slices.IndexFunc(objects, (*object).takesToken); m.Key == tokenMountPath && j >= 0 {
				refuse(a, "spec.volumeMounts: %s is where the token is that %s takes away, which a policy does later than the webhook", tokenMountPath, objects[j].Name())
			}
		}
		for _, b := range objects[i+1:] {
			if a.Name() == b.Name() {
				refuse(a, "it was given twice")
				continue
			}
			for _, place := range disagreements(a, b) {
				errs = append(errs, fmt.Errorf("PodDefaults %s/%s and %s: %s: they want different things, and a pod may be selected by both: change one, or make their selectors exclude each other",
					a.Namespace(), a.Name(), b.Name(), place))
			}
		}
	}
	return errors.Join(errs...)
}

// selectsBy reports whether the selector depends on the key. A selector for a label that
// its own object adds would not change once it is added, but is unlikely.
func (o *object) selectsBy(key string) bool {
	if o.Selector() == nil { // invalid
		return false
	}
	requirements, _ := o.Selector().Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == key })
}

// disagreements returns the places where both objects conflict, whatever the order. If
// neither has a conflict policy there is an order: the last service account and the
// first command win.
func disagreements(a, b *object) []string {
	places := append(compare.OfPlans(a.Plan, b.Plan), compare.OfPlans(b.Plan, a.Plan)...)
	slices.Sort(places)
	places = slices.Compact(places)
	if !a.denies() && !b.denies() {
		places = slices.DeleteFunc(places, func(place string) bool { return slices.Contains([]string{accountField, "command", "args"}, place) })
	}
	return places
}
