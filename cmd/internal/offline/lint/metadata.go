// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func metadata() Rule {
	return Rule{
		ID: "metadata", Group: groupObjects, Severities: []Severity{Error}, Source: fromAPI,
		What: "The metadata of an object, and of a workload's pods, is valid: a name, namespace, labels, annotations, owners and finalizers as Kubernetes permits them.",
		Why:  "The API server refuses the object, or the workload.",
		Fix:  "Correct the value. A label's has at most 63 letters, digits, '-', '_' and '.': a version with '+' is not one, and belongs into an annotation.",
		check: func(c *checker) {
			if c.cluster {
				return // stored objects passed the API server
			}
			for _, objects := range c.byKind {
				for _, o := range objects {
					c.lookAtMetadata(o)
				}
			}
		},
	}
}

func (c *checker) lookAtMetadata(o *Object) {
	var read struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(o.Raw, &read) != nil {
		return // what reads the object says so
	}
	c.invalidMetadata(o, "", &read.Metadata, nameRule(o))
	for _, w := range c.workloads {
		if w.Object == o {
			pods := w.template.ObjectMeta
			pods.Name = "x" // a template needs none
			c.invalidMetadata(o, "spec.template.", &pods, path.ValidatePathSegmentName)
		}
	}
}

func (c *checker) invalidMetadata(o *Object, parent string, meta *metav1.ObjectMeta, name validation.ValidateNameFunc) {
	for _, err := range validation.ValidateObjectMeta(meta, meta.Namespace != "", name, field.NewPath("metadata")) {
		if err.Type == field.ErrorTypeRequired && err.Field == "metadata.name" && !slices.Contains(Kinds(), schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)) {
			continue // a file of a command, such as a Kustomization
		}
		text := pattern.ReplaceAllString(err.Detail, "")
		if value, ok := err.BadValue.(string); ok && value != "" { // never an annotation's
			text = fmt.Sprintf("%q: %s", value, text)
		}
		c.object(o, Error, pointerTo(parent+err.Field), "%s%s: %s", parent, err.Field, text)
	}
}

// pattern is in messages that say the same in words.
var pattern = regexp.MustCompile(`, regex used for validation is '[^']*'`)

// nameRule returns what the API server permits as a name.
func nameRule(o *Object) validation.ValidateNameFunc {
	switch group, _, _ := strings.Cut(o.APIVersion, "/"); {
	case group == rbacv1.GroupName:
		return path.ValidatePathSegmentName
	case o.APIVersion == "v1" && (o.Kind == "Namespace" || o.Kind == "Service"), o.Kind == "StatefulSet" && group == appsv1.GroupName:
		return validation.NameIsDNSLabel // a Service's may begin with a digit in new releases
	}
	return validation.NameIsDNSSubdomain
}
