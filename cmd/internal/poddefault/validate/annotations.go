// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func (c *checker) readAnnotations(at *field.Path, annotations map[string]string) {
	var podSeccomp, seccomp, appArmor string // values of the corresponding fields
	if s := c.spec.PodSecurityContext; s != nil {
		podSeccomp = asAnnotation(s.SeccompProfile)
		if p := s.AppArmorProfile; p != nil {
			appArmor = asAnnotation(&corev1.SeccompProfile{Type: corev1.SeccompProfileType(p.Type), LocalhostProfile: p.LocalhostProfile})
		}
	}
	if s := c.spec.ContainerSecurityContext; s != nil {
		seccomp = asAnnotation(s.SeccompProfile)
		if p := s.AppArmorProfile; p != nil {
			appArmor = asAnnotation(&corev1.SeccompProfile{Type: corev1.SeccompProfileType(p.Type), LocalhostProfile: p.LocalhostProfile})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		at, value := at.Key(key), annotations[key]
		bad := func(detail string) { c.invalid(at, field.OmitValueType{}, "%s", detail) }
		switch {
		case key == "controller.kubernetes.io/pod-deletion-cost":
			if number, err := strconv.ParseInt(value, 10, 32); err != nil || strconv.FormatInt(number, 10) != value {
				bad("must be a whole number of 32 bits")
			}
		case key == "scheduler.alpha.kubernetes.io/tolerations":
			var tolerations []corev1.Toleration
			if value != "" && json.Unmarshal([]byte(value), &tolerations) != nil {
				bad("must be a list of tolerations in JSON")
			}
			plan := planOf(typeOf[corev1.Toleration](), nil)
			for i := range tolerations {
				c.fields(plan, reflect.ValueOf(&tolerations[i]).Elem(), at.Index(i))
			}
		case key == corev1.SeccompPodAnnotationKey || strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix):
			local, isLocal := strings.CutPrefix(value, corev1.SeccompLocalhostProfileNamePrefix)
			if isLocal && len(descending.check(local)) > 0 || !isLocal && !slices.Contains([]string{"runtime/default", "docker/default", "unconfined"}, value) {
				bad("must be a seccomp profile")
			}
			says := seccomp
			if key == corev1.SeccompPodAnnotationKey {
				says = podSeccomp
			}
			if says != "" && says != strings.Replace(value, "docker/", "runtime/", 1) {
				bad("contradicts the seccompProfile")
			}
		case strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			if !slices.Contains([]string{"", "runtime/default", "unconfined"}, value) && !strings.HasPrefix(value, "localhost/") {
				bad("must be an AppArmor profile")
			} else if appArmor != "" && appArmor != value {
				bad("contradicts the appArmorProfile")
			}
		}
	}
}

// asAnnotation returns a profile in annotation form, or "".
func asAnnotation(p *corev1.SeccompProfile) string {
	if p == nil {
		return ""
	}
	switch p.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return "runtime/default"
	case corev1.SeccompProfileTypeLocalhost:
		return "localhost/" + ptr.Deref(p.LocalhostProfile, "")
	default:
		return "unconfined"
	}
}
