// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func workloadSecurity() Rule {
	return Rule{
		ID: "workload-security", Group: groupWorkload, Severities: []Severity{Warning}, Source: "Pod Security Standards, restricted",
		What: "The container runs as non-root, without privilege escalation, with a read-only root file system, the default seccomp profile, and no capabilities.",
		Why:  "The server sees every object that its webhooks match, and decides about it.",
		Fix:  "Set runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, seccompProfile: {type: RuntimeDefault} and capabilities: {drop: [ALL]}.",
		check: func(c *checker) {
			for _, b := range c.oncePerContainer() {
				container, _ := b.targetPort()
				if lacking := lacks(b.workload.template.Spec, container); len(lacking) > 0 {
					c.object(b.workload.Object, Warning, b.workload.path, "%s lacks %s", container.Name, strings.Join(lacking, ", "))
				}
			}
		},
	}
}

// lacks returns settings that a container neither has nor inherits from its pod.
func lacks(spec corev1.PodSpec, container *corev1.Container) []string {
	pod, own := spec.SecurityContext, container.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	nonRoot, seccomp := own.RunAsNonRoot, own.SeccompProfile
	if nonRoot == nil {
		nonRoot = pod.RunAsNonRoot
	}
	if seccomp == nil {
		seccomp = pod.SeccompProfile
	}
	var out []string
	for _, setting := range []struct {
		there bool
		name  string
	}{
		{is(nonRoot, true), "runAsNonRoot"},
		{is(own.AllowPrivilegeEscalation, false), "allowPrivilegeEscalation: false"},
		{is(own.ReadOnlyRootFilesystem, true), "readOnlyRootFilesystem"},
		{seccomp != nil && seccomp.Type != corev1.SeccompProfileTypeUnconfined, "seccompProfile"},
		{own.Capabilities != nil && slices.Contains(own.Capabilities.Drop, "ALL"), "capabilities.drop: [ALL]"},
	} {
		if !setting.there {
			out = append(out, setting.name)
		}
	}
	return out
}

func is(value *bool, want bool) bool { return value != nil && *value == want }
