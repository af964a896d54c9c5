// SPDX-License-Identifier: Apache-2.0

// Package objectmeta checks metadata of objects as the API server does, by its packages.
package objectmeta

import (
	"encoding/json"
	"fmt"
	"regexp"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is about a field.
type Problem struct{ Field, Text string }

// Check returns the problems of an object, as JSON. A kind that is not known may be that of a command's file, such as a
// Kustomization, which needs no name.
func Check(raw []byte, gvk schema.GroupVersionKind, known bool) []Problem {
	var read struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Template struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	if known && gvk.Group == appsv1.GroupName {
		if json.Unmarshal(raw, &read) != nil {
			return nil // what reads the object says so
		}
		read.Spec.Template.Metadata.Name = "x" // a template needs none
		return append(problems("", &read.Metadata, nameRule(gvk), true), problems("spec.template.", &read.Spec.Template.Metadata, pathSegment, true)...)
	}
	var other struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(raw, &other) != nil {
		return nil
	}
	return problems("", &other.Metadata, nameRule(gvk), known)
}

func problems(parent string, meta *metav1.ObjectMeta, name validation.ValidateNameFunc, needsName bool) []Problem {
	var out []Problem
	for _, err := range validation.ValidateObjectMeta(meta, meta.Namespace != "", name, field.NewPath("metadata")) {
		if err.Type == field.ErrorTypeRequired && err.Field == "metadata.name" && !needsName {
			continue
		}
		text := pattern.ReplaceAllString(err.Detail, "")
		if value, ok := err.BadValue.(string); ok && value != "" { // never an annotation's
			text = fmt.Sprintf("%q: %s", value, text)
		}
		out = append(out, Problem{parent + err.Field, text})
	}
	return out
}

// pattern is in messages that say the same in words.
var pattern = regexp.MustCompile(`, regex used for validation is '[^']*'`)

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// nameRule returns what the API server permits as a name.
func nameRule(of schema.GroupVersionKind) validation.ValidateNameFunc {
	switch {
	case of.Group == rbacv1.GroupName:
		return pathSegment
	case of.Group == "" && (of.Kind == "Namespace" || of.Kind == "Service"), of.Kind == "StatefulSet" && of.Group == appsv1.GroupName:
		return validation.NameIsDNSLabel // a Service's may begin with a digit in new releases
	}
	return validation.NameIsDNSSubdomain
}
