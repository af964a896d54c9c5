// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/ast"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// writes returns what the policy's mutations write.
func (p *Policy) writes() []write {
	var out []write
	for _, e := range p.of(patches, applies, variable) {
		if e.kind == applies {
			out = append(out, applied(e.tree)...)
		} else {
			out = append(out, operationsOf(e.tree)...)
		}
	}
	return out
}

func (p *Policy) handles(operation admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(p.rules(), func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll)
	})
}

func releaseDefect() Rule {
	return Rule{
		ID: "policy-release", Levels: []Level{Error, Warning}, Source: "kubernetes/kubernetes#139032, #142181; KEP-3962, KEP-5793",
		What: "The cluster's release serves the policy's kind, and none of its known defects is met: in 1.34, 1.35.0 to 1.35.7, 1.36.0 to 1.36.4, a JSONPatch whose value is a list or map of Object literals; in 1.37, one whose value is a whole list or map of params, namespaceObject or request.",
		Why:  "The API server refuses the policy, or fails or panics while it evaluates it; failurePolicy Ignore does not help against a panic.",
		Fix:  "Write the list as maps, {\"name\": …} instead of Object.spec…{name: …}, which all releases accept, name the values of a map, {\"k\": params.data.k}, and copy a list by .map(x, x), or use an ApplyConfiguration; or upgrade. --kubernetes-version names the release.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if gate, lacks := c.Release.Lacks(release.MutatingPolicies); lacks && p.Mutating && p.V1 {
					c.find(p.Object, Error, "", fmt.Sprintf("Kubernetes %s does not serve %s, which came with 1.%d", c.Release, gate.What, gate.Since))
				}
				for _, e := range p.of(patches) {
					for _, d := range release.Defects() {
						c.defect(p, e, d)
					}
				}
			}
		},
	}
}

func (c *checker) defect(p *Policy, e expression, d release.Defect) {
	has := d.In(c.Release)
	switch min(has, d.Found(e.tree)) {
	case release.Certain:
		c.find(p.Object, Error, e.pointer, fmt.Sprintf("%s: in Kubernetes %s, %s (%s)", e.field(), c.Release, d.What, d.Link))
	case release.Possible:
		in := d.Releases()
		if has == release.Certain {
			in = c.Release.String()
		}
		c.find(p.Object, Warning, e.pointer, fmt.Sprintf("%s: in Kubernetes %s, %s (%s)", e.field(), in, d.What, d.Link))
	}
}

func idempotent() Rule {
	return Rule{
		ID: "policy-idempotent", Levels: []Level{Warning}, Source: docsMAP,
		What: "A JSONPatch that adds an element to a list tests whether it is there, if the policy sees updates or is reinvoked.",
		Why:  "Each update, and each reinvocation, adds the element once more: the list grows, or has a duplicate that the API server refuses.",
		Fix:  "Add only what is missing: [..].filter(x, !object.spec.tolerations.exists(t, t.key == x.key)); or use an ApplyConfiguration, or a match condition.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if !p.Mutating || !p.reinvoked() && !p.handles(admissionregistrationv1.Update) {
					continue
				}
				seen := map[string]bool{}
				for _, e := range p.of(patches) {
					for _, w := range operationsOf(e.tree) {
						if !w.growing() || seen[w.String()] || p.tests(e, w) {
							continue
						}
						seen[w.String()] = true
						when := "each update"
						if !p.handles(admissionregistrationv1.Update) {
							when = "each reinvocation"
						}
						c.find(p.Object, Warning, e.pointer, fmt.Sprintf("%s adds to %s without a test: %s adds it again", e.field(), strings.Join(w.path[:len(w.path)-1], "."), when))
					}
				}
			}
		},
	}
}

// growing reports whether an operation adds an element to a list.
func (w write) growing() bool {
	if w.op != "add" || len(w.path) < 2 {
		return false
	}
	last := w.path[len(w.path)-1]
	return last == "-" || strings.Trim(last, "0123456789") == "" && last != ""
}

// tests reports whether a policy looks at the elements of the list to which an operation adds, or at
// something that it writes itself.
func (p *Policy) tests(e expression, w write) bool {
	variables := map[string]string{}
	for _, v := range p.variables() {
		variables[v.Name] = v.Expression
	}
	list := w.path[:len(w.path)-1]
	for _, r := range reads.Of(e.text, variables) {
		if r.Root == reads.Object && !r.Shallow && len(r.Path) >= len(list) && prefixed(r.Path, list) {
			return true
		}
	}
	if slices.ContainsFunc(operationsOf(e.tree), func(o write) bool { return o.op == "test" && prefixed(o.path, list) }) {
		return true
	}
	writes := p.writes()
	for _, condition := range p.of(condition) {
		if strings.Contains(condition.text, "request.operation") {
			return true
		}
		for _, r := range reads.Of(condition.text, variables) {
			if r.Root == reads.Object && (prefixed(r.Path, list) || slices.ContainsFunc(writes, func(o write) bool { return len(o.path) > 0 && (prefixed(r.Path, o.path) || prefixed(o.path, r.Path)) })) {
				return true
			}
		}
	}
	return false
}

// converter knows how Kubernetes merges its own kinds.
var converter = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

func atomicList() Rule {
	return Rule{
		ID: "policy-atomic", Levels: []Level{Error}, Source: docsMAP,
		What: "An ApplyConfiguration sets no list, map or struct that is atomic, such as a container's args, command and envFrom, or a pod's tolerations and nodeSelector.",
		Why:  "The API server refuses the mutation: with failurePolicy Fail every request, with Ignore nothing is changed.",
		Fix:  "Use a JSONPatch for this field.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for _, e := range p.of(applies) {
					reported := map[string]bool{}
					for _, t := range c.targets(p) {
						for _, field := range atomics(e.tree, t.GroupVersion().WithKind(t.Kind)) {
							if !reported[field] {
								reported[field] = true
								c.find(p.Object, Error, e.pointer, fmt.Sprintf("%s sets %s of %s, which is atomic: an ApplyConfiguration may not change it", e.field(), field, t.Kind))
							}
						}
					}
				}
			}
		},
	}
}

// atomics returns the atomic fields that an apply configuration for a kind of Kubernetes sets.
func atomics(e ast.Expr, gvk schema.GroupVersionKind) []string {
	if !scheme.Scheme.Recognizes(gvk) {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	typed, err := converter().ObjectToTyped(u)
	if err != nil {
		return nil
	}
	var out []string
	visit(e, func(e ast.Expr) {
		if e.Kind() == ast.StructKind && e.AsStruct().TypeName() == "Object" {
			out = atomicBelow(out, e, typed.Schema(), typed.TypeRef(), "")
		}
	})
	return out
}

func atomicBelow(out []string, e ast.Expr, s *smd.Schema, of smd.TypeRef, path string) []string {
	atom, ok := s.Resolve(of)
	if !ok {
		return out
	}
	switch {
	case atom.List != nil:
		if atom.List.ElementRelationship == smd.Atomic {
			return append(out, path)
		}
		if e.Kind() == ast.ListKind {
			for _, element := range e.AsList().Elements() {
				out = atomicBelow(out, element, s, atom.List.ElementType, path+"[*]")
			}
		}
	case atom.Map != nil:
		if atom.Map.ElementRelationship == smd.Atomic {
			return append(out, path)
		}
		if e.Kind() == ast.StructKind {
			for _, field := range e.AsStruct().Fields() {
				f := field.AsStructField()
				if known, ok := atom.Map.FindField(f.Name()); ok {
					out = atomicBelow(out, f.Value(), s, known.Type, strings.TrimPrefix(path+"."+f.Name(), "."))
				}
			}
		}
	}
	return out
}

// mutable are the fields of a pod's spec that an update may change.
var mutable = [][]string{{"spec", "containers", "*", "image"}, {"spec", "initContainers", "*", "image"}, {"spec", "activeDeadlineSeconds"}, {"spec", "terminationGracePeriodSeconds"}, {"spec", "tolerations"}, {"spec", "schedulingGates"}}

func immutable() Rule {
	return Rule{
		ID: "policy-immutable", Levels: []Level{Warning}, Source: docsMAP,
		What: "A mutating policy writes no immutable field of a pod when it is updated.",
		Why:  "The API server refuses the update of every pod that was there before the policy: no user can label or annotate it, and controllers cannot remove finalizers.",
		Fix:  "Match CREATE alone, or add the match condition request.operation == \"CREATE\".",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if !p.Mutating || !slices.ContainsFunc(p.rules(), func(r admissionregistrationv1.NamedRuleWithOperations) bool {
					return matcher.Covers(r.RuleWithOperations, "", "pods", admissionregistrationv1.Update)
				}) || slices.ContainsFunc(p.of(condition, patches, applies, variable), func(e expression) bool {
					return strings.Contains(e.text, "request.operation") || strings.Contains(e.text, "oldObject")
				}) {
					continue
				}
				for _, w := range p.writes() {
					if len(w.path) < 2 || w.path[0] != "spec" || w.op == "test" || slices.ContainsFunc(mutable, func(m []string) bool { return prefixed(w.path, m) }) {
						continue
					}
					c.find(p.Object, Warning, "/spec/mutations", fmt.Sprintf("mutations write %s on UPDATE, which is immutable in a pod", w))
					break
				}
			}
		},
	}
}

func sameField() Rule {
	return Rule{
		ID: "policy-same-field", Levels: []Level{Warning}, Source: "kubernetes/kubernetes#129309",
		What: "No two mutating policies for the same resource write different values to the same field.",
		Why:  "The API server has no order among mutating policies: which value is stored can differ from request to request.",
		Fix:  "Join the policies, or let match conditions exclude each other.",
		check: func(c *checker) {
			for i, a := range c.Policies {
				for _, b := range c.Policies[:i] {
					if !a.Mutating || !b.Mutating || len(a.Bindings) == 0 || len(b.Bindings) == 0 || !overlap(a, b) {
						continue
					}
					if field := clash(a, b); field != "" {
						c.find(a.Object, Warning, "/spec/mutations", fmt.Sprintf("the policy %s writes %s too, and their order is undefined", b.Name, field))
					}
				}
			}
		},
	}
}

// overlap reports whether rules of both policies match the same resource.
func overlap(a, b *Policy) bool {
	for _, r := range a.rules() {
		if slices.ContainsFunc(b.rules(), func(o admissionregistrationv1.NamedRuleWithOperations) bool {
			return matcher.Overlap(r.RuleWithOperations, o.RuleWithOperations)
		}) {
			return true
		}
	}
	return false
}

// clash returns a field to which both policies may write different values, or "".
func clash(a, b *Policy) string {
	for _, x := range a.writes() {
		if len(x.path) == 0 || slices.Contains(x.path, computed) || x.growing() || x.op == "test" {
			continue
		}
		for _, y := range b.writes() {
			if y.op != "test" && slices.Equal(x.path, y.path) && (x.value == "" || x.value != y.value) {
				return x.String()
			}
		}
	}
	return ""
}

func deleteMutation() Rule {
	return Rule{
		ID: "policy-delete-mutation", Levels: []Level{Error}, Source: validation,
		What: "No rule of a mutating policy has the operation DELETE.",
		Why:  "The API server refuses the policy: a deletion has no object to change.",
		Fix:  "Drop DELETE; name CREATE and UPDATE in place of *.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for i, r := range p.rules() {
					if p.Mutating && slices.Contains(r.Operations, admissionregistrationv1.Delete) {
						c.find(p.Object, Error, rulePointer(i), "a mutating policy cannot have the operation DELETE")
					}
				}
			}
		},
	}
}

func beforeWebhooks() Rule {
	return Rule{
		ID: "policy-before-webhooks", Levels: []Level{Info}, Source: docsMAP,
		What: "A mutating policy is reinvoked if mutating webhooks change the same resource.",
		Why:  "The API server evaluates mutating policies first. With reinvocationPolicy Never, containers and fields that a webhook adds later, such as a PodDefault's sidecar, are stored without the policy's changes.",
		Fix:  "Set reinvocationPolicy: IfNeeded, and write the mutation so that a second evaluation changes nothing.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if !p.Mutating || p.reinvoked() || len(p.Bindings) == 0 {
					continue
				}
				for _, w := range c.Webhooks {
					if w.Mutating && slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
						return slices.ContainsFunc(r.APIGroups, func(group string) bool {
							return slices.ContainsFunc(r.Resources, func(resource string) bool { return p.matches(nil, group, resource, r.Operations...) })
						})
					}) {
						c.find(p.Object, Info, "/spec/reinvocationPolicy", "the webhook "+w.Title+" changes objects after the policy, which is not evaluated again")
						break
					}
				}
			}
		},
	}
}
