// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings configure the requirements on images.
type Settings struct {
	// alwaysPull sets the pull policy Always when an image is run for the first time, so
	// that no pod uses an image from a node's cache without credentials for it, like the
	// AlwaysPullImages admission plugin. Default true.
	AlwaysPull bool `json:"alwaysPull"`
	// allowedRegistries are the only allowed sources of images: a registry
	// ("registry.example.com", "localhost:5000"), or a registry and a prefix of the
	// repository, in whole components ("registry.example.com/team"). An image without a
	// registry is from docker.io, and from docker.io/library if it is a single word. If
	// empty, all registries are allowed.
	AllowedRegistries []string `json:"allowedRegistries,omitempty"`
	// forbidLatest rejects images with the tag latest, or with neither tag nor digest,
	// which is equivalent.
	ForbidLatest bool `json:"forbidLatest,omitempty"`
	// exemptNamespaces are the names of namespaces without requirements on images.
	ExemptNamespaces []string `json:"exemptNamespaces,omitempty"`
	// exemptImages are images without requirements, in the format of AllowedRegistries.
	ExemptImages []string `json:"exemptImages,omitempty"`
	// exemptDigests keeps the pull policy of images that are pinned by a digest, since the
	// cached image is that of the registry. Pods then need no credentials for an image that
	// is on the node.
	ExemptDigests bool `json:"exemptDigests,omitempty"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings { return Settings{AlwaysPull: true} }

// Validate reports all problems, by the names of the fields in a file.
func (s Settings) Validate() error {
	var errs field.ErrorList
	if !s.AlwaysPull && len(s.AllowedRegistries) == 0 && !s.ForbidLatest {
		errs = append(errs, field.Required(field.NewPath("alwaysPull"), "nothing is asked of images: set alwaysPull, allowedRegistries or forbidLatest"))
	}
	if s.ExemptDigests && !s.AlwaysPull {
		errs = append(errs, field.Forbidden(field.NewPath("exemptDigests"), "it is an exception to alwaysPull, which is not set"))
	}
	for _, list := range []struct {
		field  string
		places []string
	}{{"allowedRegistries", s.AllowedRegistries}, {"exemptImages", s.ExemptImages}} {
		for i, entry := range list.places {
			if _, err := parsePlace(entry); err != nil {
				errs = append(errs, field.Invalid(field.NewPath(list.field).Index(i), entry, err.Error()))
			}
			if slices.Contains(list.places[:i], entry) {
				errs = append(errs, field.Duplicate(field.NewPath(list.field).Index(i), entry))
			}
		}
	}
	for i, namespace := range s.ExemptNamespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(field.NewPath("exemptNamespaces").Index(i), namespace, problem))
		}
		if slices.Contains(s.ExemptNamespaces[:i], namespace) {
			errs = append(errs, field.Duplicate(field.NewPath("exemptNamespaces").Index(i), namespace))
		}
	}
	return errs.ToAggregate()
}
