// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func checkSecurityContext(c *typeChecker, at *field.Path, s *corev1.SecurityContext) {
	if ptr.Deref(s.AllowPrivilegeEscalation, true) {
		return
	}
	if ptr.Deref(s.Privileged, false) {
		c.invalid(at.Child("allowPrivilegeEscalation"), false, "may not be false beside privileged: true")
	}
	if s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN") {
		c.invalid(at.Child("allowPrivilegeEscalation"), false, "may not be false beside the capability CAP_SYS_ADMIN")
	}
}

func checkSeccomp(c *typeChecker, at *field.Path, p *corev1.SeccompProfile) {
	c.localhostProfile(at, p.Type == corev1.SeccompProfileTypeLocalhost, p.LocalhostProfile)
}

func checkAppArmor(c *typeChecker, at *field.Path, p *corev1.AppArmorProfile) {
	c.localhostProfile(at, p.Type == corev1.AppArmorProfileTypeLocalhost, p.LocalhostProfile)
	if text := ptr.Deref(p.LocalhostProfile, ""); strings.TrimSpace(text) != text || len(text) > 4095 {
		c.invalid(at.Child("localhostProfile"), text, "must have at most 4095 characters and no spaces around them")
	}
}

func (c *typeChecker) localhostProfile(at *field.Path, local bool, profile *string) {
	at = at.Child("localhostProfile")
	if local && profile == nil {
		c.required(at, "the type Localhost needs it")
	} else if !local && profile != nil {
		c.invalid(at, *profile, "may be set with the type Localhost alone")
	}
}

var (
	windowsDomain = compiledOnce(`^([^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}|[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*)$`)
	windowsUser   = compiledOnce(`^[^"/\\:;|=,+*?<>@\[\][:cntrl:]]{1,104}$`)
)

func checkWindows(c *typeChecker, at *field.Path, w *corev1.WindowsSecurityContextOptions) {
	if len(ptr.Deref(w.GMSACredentialSpec, "")) > 64*1024 {
		c.errs = append(c.errs, field.TooLong(at.Child("gmsaCredentialSpec"), "", 64*1024))
	}
	if name := ptr.Deref(w.RunAsUserName, ""); name != "" {
		domain, user, found := strings.Cut(name, `\`)
		if !found {
			domain, user = "X", name
		}
		if len(domain) > 255 || !windowsDomain().MatchString(domain) || !windowsUser().MatchString(user) || strings.Trim(user, ". ") == "" {
			c.invalid(at.Child("runAsUserName"), name, `must be a user of Windows, or DOMAIN\USER`)
		}
	}
}
