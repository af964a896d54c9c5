// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ofKind returns the resource of a kind; known is false if there may be one that was not read.
func (c *checker) ofKind(gvk schema.GroupVersionKind) (found *Resource, known bool) {
	for i, r := range c.Resources {
		if r.Group == gvk.Group && r.Version == gvk.Version && r.Kind == gvk.Kind {
			return &c.Resources[i], true
		}
	}
	return nil, c.Complete || c.Groups[gvk.Group]
}

func paramKind() Rule {
	return Rule{
		ID: "policy-param-kind", Levels: []Level{Error}, Source: docsVAP,
		What: "The API server has the kind and version of paramKind.",
		Why:  "Otherwise the policy fails for every request that it matches, whatever parameterNotFoundAction says.",
		Fix:  "Correct apiVersion and kind, or install the CustomResourceDefinition before the policy.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.paramKind() == nil {
					continue
				}
				if r, known := c.ofKind(p.paramGVK()); r == nil && known {
					c.find(p.Object, Error, "/spec/paramKind", fmt.Sprintf("the API server has no kind %s in %s: the policy fails for every request", p.paramKind().Kind, p.paramKind().APIVersion))
				} else if r == nil {
					c.skipped(p.Object, "no definition of "+p.paramKind().Kind+" among the files")
				}
			}
		},
	}
}

func paramScope() Rule {
	return Rule{
		ID: "policy-param-scope", Levels: []Level{Error}, Source: docsVAP,
		What: "paramRef.namespace is set only for parameters in namespaces, and is set if the policy is about cluster-scoped resources.",
		Why:  "Otherwise the policy fails for these requests.",
		Fix:  "Set paramRef.namespace for a namespaced kind that cluster-scoped resources use; remove it for a cluster-scoped kind.",
		check: func(c *checker) {
			for _, b := range c.Bindings {
				if b.Policy == nil || b.ParamRef == nil || b.Policy.paramKind() == nil {
					continue
				}
				r, _ := c.ofKind(b.Policy.paramGVK())
				switch {
				case r == nil:
				case !r.Namespaced && b.ParamRef.Namespace != "":
					c.find(b.Object, Error, "/spec/paramRef/namespace", fmt.Sprintf("paramRef.namespace is set, but %s is cluster-scoped: the policy fails for every request", r.Kind))
				case r.Namespaced && b.ParamRef.Namespace == "":
					for _, t := range c.targets(b.Policy) {
						if !t.Namespaced {
							c.find(b.Object, Error, "/spec/paramRef", fmt.Sprintf("paramRef.namespace is missing: %s are in no namespace in which a %s could be looked for, so the policy fails for them", t.GroupVersionResource.Resource, r.Kind))
							break
						}
					}
				}
			}
		},
	}
}

func paramMissing() Rule {
	return Rule{
		ID: "policy-param-missing", Levels: []Level{Error, Warning, Info}, Source: docsVAP,
		What: "The parameters of a binding exist.",
		Why:  "With parameterNotFoundAction Deny, the API server refuses every request that the policy matches; with Allow, the policy is not evaluated.",
		Fix:  "Add the parameter, and apply it before the binding.",
		check: func(c *checker) {
			for _, b := range c.Bindings {
				if b.Policy == nil || b.ParamRef == nil || b.Policy.paramKind() == nil {
					continue
				}
				gvk := b.Policy.paramGVK()
				r, _ := c.ofKind(gvk)
				if r == nil || r.Namespaced && b.ParamRef.Namespace == "" {
					continue // it differs by namespace
				}
				if slices.ContainsFunc(c.Objects[gvk], func(o *Object) bool { return selectsParam(b.ParamRef, o, r.Namespaced) }) {
					continue
				}
				c.missing(b, gvk)
			}
		},
	}
}

func (c *checker) missing(b *Binding, gvk schema.GroupVersionKind) {
	what := fmt.Sprintf("%s %s", gvk.Kind, b.ParamRef.Name)
	if b.ParamRef.Name == "" {
		what = gvk.Kind + " with the labels of paramRef.selector"
	}
	if b.ParamRef.Namespace != "" {
		what += " in namespace " + b.ParamRef.Namespace
	}
	deny := b.ParamRef.ParameterNotFoundAction != nil && *b.ParamRef.ParameterNotFoundAction == admissionregistrationv1.DenyAction && b.Policy.failsClosed() && b.denies()
	all := c.Listed(gvk)
	switch {
	case deny && all:
		c.find(b.Object, Error, "/spec/paramRef", "there is no "+what+": every request that the policy matches is refused")
	case deny:
		c.find(b.Object, Warning, "/spec/paramRef", "no "+what+" is among the files: without it, every request that the policy matches is refused")
	case all:
		c.find(b.Object, Warning, "/spec/paramRef", "there is no "+what+": the policy is not evaluated")
	default:
		c.find(b.Object, Info, "/spec/paramRef", "no "+what+" is among the files: without it, the policy is not evaluated")
	}
}

// selectsParam reports whether a reference is to an object.
func selectsParam(ref *admissionregistrationv1.ParamRef, o *Object, namespaced bool) bool {
	namespace := o.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if namespaced && namespace != ref.Namespace {
		return false
	}
	if ref.Selector == nil {
		return o.Name == ref.Name
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	return err == nil && selector.Matches(labels.Set(o.Labels))
}

func paramUnused() Rule {
	return Rule{
		ID: "policy-param-unused", Levels: []Level{Error, Warning}, Source: docsVAP,
		What: "A binding of a policy with a paramKind has a paramRef, and one of a policy without a paramKind has none.",
		Why:  "Without a paramRef, params is null: an expression that reads it fails. A paramRef without a paramKind is ignored.",
		Fix:  "Add the paramRef, or the paramKind, or test params != null.",
		check: func(c *checker) {
			for _, b := range c.Bindings {
				if b.Policy == nil {
					continue
				}
				switch {
				case b.ParamRef == nil && b.Policy.paramKind() != nil && b.Policy.readsParams():
					c.find(b.Object, Error, "/spec", "the binding has no paramRef: params is null, and the policy's expressions fail")
				case b.ParamRef != nil && b.Policy.paramKind() == nil:
					c.find(b.Object, Warning, "/spec/paramRef", "paramRef is ignored: the policy has no paramKind")
				}
			}
		},
	}
}

// readsParams reports whether some expression reads params without asking whether it is null.
func (p *Policy) readsParams() bool {
	reads := false
	for _, e := range p.all() {
		if strings.Contains(e.text, "params.") {
			reads = true
		}
		if strings.Contains(e.text, "params != null") || strings.Contains(e.text, "params == null") {
			return false
		}
	}
	return reads
}

// edited are kinds that Kubernetes' role edit lets the people of a namespace write.
var edited = []string{"ConfigMap", "Secret", "ServiceAccount", "Service", "PersistentVolumeClaim", "Pod"}

func paramWriters() Rule {
	return Rule{
		ID: "policy-param-writers", Levels: []Level{Warning}, Source: incidents,
		What: "Only administrators can write the parameters of a policy that refuses requests: they are in a fixed namespace, and no role lets all users write them.",
		Why:  "A user who writes the parameter decides what the policy allows.",
		Fix:  "Use a kind of its own in place of ConfigMaps, set paramRef.namespace, and remove the right from groups such as system:authenticated.",
		check: func(c *checker) {
			for _, b := range c.Bindings {
				if b.Policy == nil || b.ParamRef == nil || !b.denies() {
					continue
				}
				r, _ := c.ofKind(b.Policy.paramGVK())
				if r == nil {
					continue
				}
				if r.Group == "" && slices.Contains(edited, r.Kind) && b.ParamRef.Namespace == "" {
					c.find(b.Object, Warning, "/spec/paramRef", fmt.Sprintf("the parameter is a %s of the request's own namespace: a user who may write %s there decides what the policy allows", r.Kind, r.GroupVersionResource.Resource))
				}
				for _, who := range c.Writers(r.Group, r.GroupVersionResource.Resource) {
					c.find(b.Object, Warning, "/spec/paramRef", fmt.Sprintf("%s can write %s, the parameters of the policy", who, resourceName(r.Group, r.GroupVersionResource.Resource)))
				}
			}
		},
	}
}
