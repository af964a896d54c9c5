// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
)

// RequiredSemantics defines how the required nodes of several Datasets are combined.
type RequiredSemantics string

const (
	// RequireAll requires nodes that suit all Datasets of a pod.
	RequireAll RequiredSemantics = "and"
	// RequireAny requires nodes that suit one of them, like Fluid's own webhook.
	RequireAny RequiredSemantics = "or"
)

// SidecarMode selects the type of container for sidecars.
type SidecarMode string

// Sidecars are ordinary containers, or native sidecars (KEP-753).
const (
	PlainSidecar  SidecarMode = "sidecar"
	NativeSidecar SidecarMode = "native-sidecar"
)

// sidecarModes are the valid values. Fluid's chart has other names for ordinary containers:
// default and legacy.
var sidecarModes = []SidecarMode{PlainSidecar, NativeSidecar, "default", "legacy"}

// Settings are those of the webhook.
type Settings struct {
	// pluginsProfile is Fluid's profile of plugins, in the format of that key of its ConfigMap
	// webhook-plugins. Without it and pluginsProfileConfigMap, [DefaultProfile] is used.
	PluginsProfile string `json:"pluginsProfile,omitempty"`
	// pluginsProfileConfigMap is the namespace and name of that ConfigMap,
	// "fluid-system/webhook-plugins", which is watched. It excludes pluginsProfile.
	PluginsProfileConfigMap string `json:"pluginsProfileConfigMap,omitempty"`
	// requiredSemantics is "and", the default, or "or".
	RequiredSemantics RequiredSemantics `json:"requiredSemantics"`
	// namespaceLabel also enables the older mode: all pods of namespaces with the label
	// fluid.io/enable-injection=true, even if another webhook configuration sends them to
	// Path.
	NamespaceLabel bool `json:"namespaceLabel,omitempty"`
	// disabled admits all pods unchanged.
	Disabled bool `json:"disabled,omitempty"`
	// filePrefetcherImage is the image for pods whose annotations do not set one.
	FilePrefetcherImage string `json:"filePrefetcherImage,omitempty"`
	// sidecarMode is "sidecar", the default, or "native-sidecar". "default" and "legacy", the
	// values of Fluid's chart, are the same as "sidecar".
	SidecarMode SidecarMode `json:"sidecarMode"`
	// platformLabel is the deprecated label of pods with the name of their serverless
	// platform.
	PlatformLabel string `json:"platformLabel,omitempty"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{RequiredSemantics: RequireAll, SidecarMode: PlainSidecar}
}

// FromEnvironment applies the environment variables of Fluid's own webhook, looked up
// with getenv. [Settings.Validate] reports invalid values.
func (s *Settings) FromEnvironment(getenv func(string) string) {
	if disabled, err := strconv.ParseBool(getenv("DISABLE_INJECTION")); err == nil && disabled {
		s.Disabled = true
	}
	if image := getenv("FILE_PREFETCHER_IMAGE"); image != "" {
		s.FilePrefetcherImage = image
	}
	switch mode := SidecarMode(getenv("FUSE_SIDECAR_INJECTION_MODE")); mode {
	case "":
	case "default", "legacy":
		s.SidecarMode = PlainSidecar
	default:
		s.SidecarMode = mode
	}
	if key := getenv("KEY_SERVERLESS_PLATFORM"); key != "" {
		s.PlatformLabel = key
	}
}

// Validate reports all problems, by the names of the fields in a file. A profile in a
// ConfigMap is checked when it is read.
func (s Settings) Validate() error {
	var errs field.ErrorList
	at := func(name string) *field.Path { return field.NewPath(name) }
	if s.PluginsProfile != "" && s.PluginsProfileConfigMap != "" {
		errs = append(errs, field.Forbidden(at("pluginsProfileConfigMap"), "the profile stands in pluginsProfile already: leave one out"))
	}
	if ref := s.ProfileRef(); s.PluginsProfileConfigMap != "" && (len(validation.IsDNS1123Label(ref.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(ref.Name)) > 0) {
		errs = append(errs, field.Invalid(at("pluginsProfileConfigMap"), s.PluginsProfileConfigMap, "write NAMESPACE/NAME, such as fluid-system/webhook-plugins"))
	}
	if s.PluginsProfile != "" {
		_, err := ParseProfile(s.PluginsProfile)
		errs = append(errs, profileErrors(at("pluginsProfile"), err)...)
	}
	switch s.RequiredSemantics {
	case RequireAll, RequireAny:
	default:
		errs = append(errs, field.NotSupported(at("requiredSemantics"), s.RequiredSemantics, []RequiredSemantics{RequireAll, RequireAny}))
	}
	if !slices.Contains(sidecarModes, s.SidecarMode) {
		errs = append(errs, field.NotSupported(at("sidecarMode"), s.SidecarMode, sidecarModes))
	}
	if s.PlatformLabel != "" {
		for _, problem := range validation.IsQualifiedName(s.PlatformLabel) {
			errs = append(errs, field.Invalid(at("platformLabel"), s.PlatformLabel, problem))
		}
	}
	return errs.ToAggregate()
}

// profileErrors assigns each error of a profile to the field that contains the profile.
func profileErrors(at *field.Path, err error) field.ErrorList {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	var errs field.ErrorList
	for _, one := range joined.Unwrap() {
		errs = append(errs, profileErrors(at, one)...)
	}
	return errs
}

// prefixed prefixes each of the joined errors with the name of a field.
func prefixed(field string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", field, err)
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, prefixed(field, one))
	}
	return errors.Join(errs...)
}

// ProfileRef names the ConfigMap with the profile, or is empty.
func (s Settings) ProfileRef() Ref {
	namespace, name, _ := strings.Cut(s.PluginsProfileConfigMap, "/")
	return Ref{kinds.Profile, namespace, name}
}

// Profile returns the profile of the settings, or nil if it is in a ConfigMap.
func (s Settings) Profile() (*Profile, error) {
	if s.PluginsProfileConfigMap != "" {
		return nil, nil
	}
	return ParseProfile(cmp.Or(s.PluginsProfile, DefaultProfile))
}

// Sidecars reports whether pods may get sidecars: because of the profile, or because
// the profile is in a ConfigMap.
func (s Settings) Sidecars() bool {
	profile, err := s.Profile()
	return !s.Disabled && (err != nil || profile == nil || profile.Sidecars())
}

// PolicyRules returns the rights that a watcher needs for the settings: cluster-wide,
// and by namespace.
func (s Settings) PolicyRules() (rules []rbacv1.PolicyRule, in map[string][]rbacv1.PolicyRule) {
	if s.Sidecars() {
		rules = []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get"}},
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		}
	}
	if ref := s.ProfileRef(); ref.Name != "" {
		in = map[string][]rbacv1.PolicyRule{ref.Namespace: {
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{ref.Name}, Verbs: []string{"list", "watch"}},
		}}
	}
	return rules, in
}
