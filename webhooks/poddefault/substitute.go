// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Placeholders are ${namespace} and ${pod.labels['key']}. Other text with ${ stays as
// it is, because shells know it too, and so does one behind a second dollar sign: of
// $$ Kubernetes itself makes $ in env values and args.
const (
	placeholderNamespace = "namespace"
	placeholderLabel     = "pod.labels['"
)

// A placeholder is a place in a text.
type placeholder struct {
	start, end int
	label      string // empty: the namespace
}

// placeholdersIn finds the placeholders of a text in their order, and those that look
// like one and are none.
func placeholdersIn(text string) (found []placeholder, odd []string) {
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
		length := strings.IndexByte(text[i:], '}')
		if length < 0 {
			break
		}
		name, end := text[i+2:i+length], i+length+1
		label, isLabel := strings.CutPrefix(name, placeholderLabel)
		label, closed := strings.CutSuffix(label, "']")
		switch {
		case name == placeholderNamespace:
			found = append(found, placeholder{start: i, end: end})
		case isLabel && closed && len(validation.IsQualifiedName(label)) == 0:
			found = append(found, placeholder{i, end, label})
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

// placeholders checks the texts of a spec in which placeholders count.
func (c *checker) placeholders(path *field.Path) {
	check := func(path *field.Path, text string) {
		found, odd := placeholdersIn(text)
		switch {
		case c.spec.Substitute && len(odd) > 0:
			c.warn(path, "${%s} stays as it is: only ${namespace} and ${pod.labels['key']} are replaced", odd[0])
		case !c.spec.Substitute && len(found) > 0:
			c.warn(path, "the placeholder stays as it is: only with substitute: true is it replaced")
		}
	}
	s := c.spec
	for i, env := range s.Env {
		check(path.Child("env").Index(i).Child("value"), env.Value)
	}
	for i, arg := range s.Args {
		check(path.Child("args").Index(i), arg)
	}
	for i, mount := range s.VolumeMounts {
		check(path.Child("volumeMounts").Index(i).Child("subPath"), mount.SubPath)
	}
}
