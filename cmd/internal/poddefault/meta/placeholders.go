// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Placeholders are ${namespace} and ${pod.labels['key']}. Other text with ${ stays
// unchanged, because shells use it too. So does a placeholder after a second dollar
// sign: Kubernetes itself turns $$ into $ in env values and args.
const (
	placeholderNamespace = "namespace"
	placeholderLabel     = "pod.labels['"
)

// maxPlaceholder exceeds the longest placeholder: a label key has a prefix of up to
// 253 characters and a name of up to 63.
const maxPlaceholder = 400

// A Placeholder is an occurrence in a text.
type Placeholder struct {
	Start, End int
	Label      string // empty for the namespace
}

// Remembering returns a check of strings that asks problems once for each.
func Remembering(problems func(string) []string) (ok func(string) bool) {
	known := map[string]bool{}
	return func(s string) bool {
		good, is := known[s]
		if !is {
			good = len(problems(s)) == 0
			known[s] = good
		}
		return good
	}
}

// PlaceholdersIn returns the placeholders of a text in order, and malformed ones.
func PlaceholdersIn(text string) (found []Placeholder, odd []string) {
	if !strings.Contains(text, "${") {
		return nil, nil
	}
	isKey := Remembering(validation.IsQualifiedName)
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '$' {
			continue
		}
		if text[i+1] == '$' {
			i++
			continue
		}
		if text[i+1] != '{' {
			continue
		}
		length := strings.IndexByte(text[i:min(len(text), i+maxPlaceholder)], '}')
		if length < 0 {
			continue
		}
		name, end := text[i+2:i+length], i+length+1
		label, isLabel := strings.CutPrefix(name, placeholderLabel)
		label, closed := strings.CutSuffix(label, "']")
		switch {
		case name == placeholderNamespace:
			found = append(found, Placeholder{Start: i, End: end})
		case isLabel && closed && isKey(label):
			found = append(found, Placeholder{i, end, label})
		case name == "" || strings.HasPrefix(name, "pod.") || strings.HasPrefix(name, placeholderNamespace+"."):
			odd = append(odd, name)
			continue
		default:
			continue
		}
		i = end - 1
	}
	return found, odd
}

// Texts calls visit for each text of a spec with substitution, with its path and a name
// for it.
func Texts(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path, visit func(path *field.Path, text *string)) {
	env := func(path *field.Path, list []corev1.EnvVar) {
		for i := range list {
			visit(path.Index(i).Child("value"), &list[i].Value)
		}
	}
	args := func(path *field.Path, list []string) {
		for i := range list {
			visit(path.Index(i), &list[i])
		}
	}
	mounts := func(path *field.Path, list []corev1.VolumeMount) {
		for i := range list {
			visit(path.Index(i).Child("subPath"), &list[i].SubPath)
		}
	}
	env(path.Child("env"), spec.Env)
	args(path.Child("args"), spec.Args)
	mounts(path.Child("volumeMounts"), spec.VolumeMounts)
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"sidecars", spec.Sidecars}} {
		for i := range list.containers {
			c, at := &list.containers[i], path.Child(list.name).Index(i)
			env(at.Child("env"), c.Env)
			args(at.Child("args"), c.Args)
			mounts(at.Child("volumeMounts"), c.VolumeMounts)
		}
	}
}

// Substituted returns the paths with substitution in a spec at path. Other fields stay
// unchanged.
func Substituted(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) map[string]bool {
	places := map[string]bool{}
	Texts(spec, path, func(path *field.Path, _ *string) { places[path.String()] = true })
	return places
}

// HasPlaceholders reports whether a text with substitution has a placeholder.
func HasPlaceholders(spec *kubeflowv1alpha1.PodDefaultSpec) bool {
	has := false
	Texts(spec, nil, func(_ *field.Path, text *string) {
		found, _ := PlaceholdersIn(*text)
		has = has || len(found) > 0
	})
	return has
}
