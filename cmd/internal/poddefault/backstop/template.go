// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An index is stored as a PodTemplate from which no pod is ever created. The parameter
// of a policy must have a kind that the API server knows as soon as it starts,
// otherwise the policy refuses every pod after each restart. Few kinds qualify. API
// servers cache all objects of the kind: clusters have many ConfigMaps and Secrets, and
// namespace editors may change them. PodTemplates are practically unused, and only
// administrators may write them.
const (
	// TemplateName is the name of the index in each namespace.
	TemplateName = "sallyport-poddefaults"
	// TemplateResource is the resource in RBAC rules and URLs.
	TemplateResource = "podtemplates"

	// ObjectsAnnotation and OmittedAnnotation inform users of the number of filed
	// objects and of objects without room.
	ObjectsAnnotation = "sallyport.io/objects"
	OmittedAnnotation = "sallyport.io/omitted"
)

// Containers of the template. Their args are the lists of an index. The lists that
// describe pages have equal lengths.
const (
	restList   = "rest"
	fromList   = "from"
	prefixList = "prefix"
	termsList  = "terms"
)

// Template returns the stored form of the index.
func (x *Index) Template(namespace string) *corev1.PodTemplate {
	var from, prefix, terms []string
	for _, page := range x.Pages {
		from, prefix, terms = append(from, page.From), append(prefix, page.Prefix), append(terms, page.Terms)
	}
	// Meets the strictest PodSecurity standard, which also warns about templates.
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
				ObjectsAnnotation:    strconv.Itoa(x.Objects), OmittedAnnotation: strconv.Itoa(len(x.Omitted)),
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

// digestOf identifies an index by the parts that policies and users read. It also
// returns the approximate size in bytes.
func digestOf(template *corev1.PodTemplate) (out digest, size int) {
	var text []string
	for _, c := range template.Template.Spec.Containers {
		text = append(text, c.Name, strconv.Itoa(len(c.Args)))
		text = append(text, c.Args...)
	}
	for _, key := range []string{ObjectsAnnotation, OmittedAnnotation} {
		text = append(text, template.Annotations[key])
	}
	h := sha256.New()
	for _, t := range text {
		_, _ = fmt.Fprintf(h, "%d:%s", len(t), t)
		size += len(t)
	}
	h.Sum(out[:0])
	return out, size
}
