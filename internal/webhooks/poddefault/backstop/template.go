// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An index is stored as a PodTemplate of which no pod is ever made. A policy needs a
// parameter of a kind that the API server knows from its first moment, or it refuses every
// pod after each restart, and there are few such kinds. API servers keep all objects of
// the kind in memory: of ConfigMaps or Secrets there are many, and whoever may edit a
// namespace may edit them; of PodTemplates there are none, and only administrators may
// write them.
const (
	// TemplateName is that of the index in each namespace.
	TemplateName = "sallyport-poddefaults"
	// TemplateResource is the kind's in RBAC rules and URLs.
	TemplateResource = "podtemplates"

	// ObjectsAnnotation and OmittedAnnotation are for people: how many objects are filed,
	// and how many there was no room for.
	ObjectsAnnotation = "sallyport.io/objects"
	OmittedAnnotation = "sallyport.io/omitted"
)

// The containers of the template. Their args are the lists of an index; those of the
// pages are of the same length.
const (
	restList   = "rest"
	fromList   = "from"
	prefixList = "prefix"
	termsList  = "terms"
)

// Template is the object that holds the index of a namespace.
func (x *Index) Template(namespace string) *corev1.PodTemplate {
	var from, prefix, terms []string
	for _, page := range x.Pages {
		from, prefix, terms = append(from, page.From), append(prefix, page.Prefix), append(terms, page.Terms)
	}
	// It meets the strictest PodSecurity standard, which warns of templates too.
	list := func(name string, args []string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "none", Args: args,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}
	}
	return &corev1.PodTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: TemplateName,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "sallyport"},
			Annotations: map[string]string{
				"sallyport.io/about": "What a ValidatingAdmissionPolicy knows of PodDefaults; no pod is made of it. Do not edit it: it is put right",
				ObjectsAnnotation:    strconv.Itoa(x.Objects), OmittedAnnotation: strconv.Itoa(x.Omitted),
			},
		},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{list(restList, x.Rest), list(fromList, from), list(prefixList, prefix), list(termsList, terms)},
		}},
	}
}

// digestOf tells indexes apart by what a policy reads of them and what people do. It also
// returns the size in bytes, about.
func digestOf(template *corev1.PodTemplate) (digest, int) {
	var text []string
	size := 0
	for _, c := range template.Template.Spec.Containers {
		text = append(text, c.Name, strconv.Itoa(len(c.Args)))
		text = append(text, c.Args...)
	}
	for _, key := range []string{ObjectsAnnotation, OmittedAnnotation} {
		text = append(text, template.Annotations[key])
	}
	for _, t := range text {
		size += len(t)
	}
	return sum(slices.Values(text)), size
}
