// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"fmt"
	"slices"
	"strings"
)

// policy is the compiled settings.
type policy struct {
	settings Settings
	allowed  places
	exempt   places
}

func newPolicy(settings Settings) *policy {
	return &policy{settings: settings, allowed: parsePlaces(settings.AllowedRegistries), exempt: parsePlaces(settings.ExemptImages)}
}

func (p *policy) exemptNamespace(namespace string) bool {
	return slices.Contains(p.settings.ExemptNamespaces, namespace)
}

// mustPull reports whether the pull policy must be Always and is not.
func (p *policy) mustPull(u *use) bool {
	if !p.settings.AlwaysPull || u.pulledAlways() {
		return false
	}
	if len(p.exempt) == 0 && !p.settings.ExemptDigests {
		return true
	}
	parsed := parseImage(string(u.image))
	return !p.exempt.has(parsed.place) && (!p.settings.ExemptDigests || parsed.digest == "")
}

// violations returns the violations of an image use, with the remedy. It never contains
// the reference, which may be confidential. A missing image is left to the API server.
func (p *policy) violations(u *use, running bool) []string {
	var out []string
	if p.mustPull(u) {
		remedy := "set it to Always"
		if running {
			remedy = "it cannot be changed: create the pod anew"
		}
		field := "imagePullPolicy"
		if u.list == volumes {
			field = "image.pullPolicy"
		}
		out = append(out, fmt.Sprintf("%s: %s must be Always: %s", u.field(), field, remedy))
	}
	if len(u.image) == 0 || len(p.allowed) == 0 && !p.settings.ForbidLatest {
		return out
	}
	parsed := parseImage(string(u.image))
	if p.exempt.has(parsed.place) {
		return out
	}
	if len(p.allowed) > 0 && !p.allowed.has(parsed.place) {
		out = append(out, fmt.Sprintf("%s: the image is of a registry that is not allowed: use one of %s",
			u.field(), strings.Join(p.settings.AllowedRegistries, ", ")))
	}
	if p.settings.ForbidLatest && parsed.latest() {
		out = append(out, fmt.Sprintf("%s: the image has the tag latest, or none, which means the same: name a version or digest", u.field()))
	}
	return out
}
