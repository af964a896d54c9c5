// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings say what is asked of images.
type Settings struct {
	// AlwaysPull sets the pull policy Always where an image is run for the first time,
	// so that nobody runs an image from a node's cache without credentials for it. What
	// the AlwaysPullImages admission plugin does. Default true.
	AlwaysPull bool `json:"alwaysPull"`
	// AllowedRegistries are the only places that images may come from: a registry
	// ("registry.example.com", "localhost:5000"), or a registry and the beginning of a
	// repository, in whole components ("registry.example.com/team"). An image that names
	// no registry is of docker.io, and of docker.io/library if it is a single word. Empty
	// for all places.
	AllowedRegistries []string `json:"allowedRegistries,omitempty"`
	// ForbidLatest refuses images with the tag latest, and those with neither tag nor
	// digest, which means the same.
	ForbidLatest bool `json:"forbidLatest,omitempty"`
	// ExemptNamespaces are names of namespaces where nothing is asked of images.
	ExemptNamespaces []string `json:"exemptNamespaces,omitempty"`
	// ExemptImages, written as AllowedRegistries are, are images of which nothing is
	// asked.
	ExemptImages []string `json:"exemptImages,omitempty"`
	// ExemptDigests leaves alone the pull policy of images that are pinned by a digest:
	// what is in the cache is what the registry has. Whoever runs it then needs no
	// credentials for it on a node that has it.
	ExemptDigests bool `json:"exemptDigests,omitempty"`
}

// DefaultSettings are the settings of a webhook that was not told otherwise.
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
