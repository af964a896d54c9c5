// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

// smallest returns the smallest object of a kind that the API server accepts; of a kind of which none is known
// it has a name alone, and known is false.
func smallest(gvk schema.GroupVersionKind) (object map[string]any, known bool) {
	pod := func() map[string]any {
		return map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
	}
	template := func() map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}, "spec": pod()}
	}
	object = map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{"name": "x"}}
	switch gvk.String() {
	case "/v1, Kind=Pod":
		object["spec"] = pod()
	case "/v1, Kind=ConfigMap", "/v1, Kind=Secret", "/v1, Kind=Namespace", "/v1, Kind=ServiceAccount":
	case "/v1, Kind=Service":
		object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	case "apps/v1, Kind=Deployment", "apps/v1, Kind=DaemonSet", "apps/v1, Kind=StatefulSet":
		object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}}, "template": template()}
	case "batch/v1, Kind=Job":
		object["spec"] = map[string]any{"template": map[string]any{"spec": pod()}}
	default:
		return object, false
	}
	return object, true
}

// evaluate evaluates match conditions, and then validations, for a small object of a target; it returns the
// first expression that fails, and why. Expressions about parameters, rights, and what a cluster has are left out.
func (p *Policy) evaluate(t target, operation admissionregistrationv1.OperationType, anyKind bool) (expression, string) {
	gvk := t.GroupVersion().WithKind(t.Kind)
	body, known := smallest(gvk)
	if !known && !anyKind || len(p.programs().errs) > 0 {
		return expression{}, ""
	}
	r := matcher.Request{Operation: operation, Resource: t.GroupVersionResource, Kind: gvk, Name: "x", User: "alice", Object: body}
	if t.Namespaced {
		r.Namespace = "default"
		body["metadata"].(map[string]any)["namespace"] = r.Namespace
	}
	if operation == admissionregistrationv1.Delete {
		r.Object, r.OldObject = nil, body
	}
	programs := p.programs()
	compiler, _ := p.declare()
	run := func(e expression) (bool, string) {
		list := compiler.CompileCondition([]cel.ExpressionAccessor{p.accessor(e)}, programs.options, environment.StoredExpressions)
		value, err := r.Evaluate(context.Background(), list, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return false, cause(err)
		}
		return value, ""
	}
	unknown := func(e expression) bool {
		for _, word := range []string{"params", "authorizer", "namespaceObject", "userInfo"} {
			if strings.Contains(e.text, word) {
				return true
			}
			for _, v := range p.variables() {
				if strings.Contains(v.Expression, word) {
					return true
				}
			}
		}
		return false
	}
	failing, why := expression{}, ""
	for _, e := range p.of(condition) {
		if unknown(e) {
			return expression{}, ""
		}
		ok, cause := run(e)
		if cause == "" && !ok {
			return expression{}, ""
		}
		if cause != "" && why == "" {
			failing, why = e, cause
		}
	}
	if why != "" {
		return failing, why
	}
	for _, e := range p.of(validates) {
		if unknown(e) {
			continue
		}
		ok, cause := run(e)
		if cause != "" {
			return e, cause
		}
		if !ok {
			return expression{}, "" // the object would be refused for a reason
		}
	}
	return expression{}, ""
}

// cause is what went wrong in an evaluation: "no such key: labels".
func cause(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "resulted in error: "); i >= 0 {
		text = text[i+len("resulted in error: "):]
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func unguarded() Rule {
	return Rule{
		ID: "policy-unguarded", Levels: []Level{Warning}, Source: docsVAP,
		What: "Expressions can be evaluated for the smallest valid object of each kind: fields that may be missing, such as labels, are read with has() or as optional fields.",
		Why:  "An expression that reads a missing field fails: failurePolicy Fail refuses the object with the expression's text, and Ignore stores it unchecked.",
		Fix:  "Write has(object.metadata.labels) && …, or object.metadata.?labels[?\"app\"].orValue(\"\").",
		check: func(c *checker) {
			for _, p := range c.Policies {
				reported := map[string]bool{}
				for _, t := range c.targets(p) {
					if p.Mutating || !matcher.Names(p.rules()[t.rule].RuleWithOperations, admissionregistrationv1.Create) {
						continue
					}
					e, why := p.evaluate(t, admissionregistrationv1.Create, false)
					if strings.HasPrefix(why, "no such key") && !reported[e.pointer] {
						reported[e.pointer] = true
						c.find(p.Object, Warning, e.pointer, fmt.Sprintf("%s fails for a small %s: %s", e.field(), t.Kind, why))
					}
				}
			}
		},
	}
}

func deletion() Rule {
	return Rule{
		ID: "policy-delete", Levels: []Level{Error, Warning}, Source: docsVAP,
		What: "A policy for DELETE does not read object, which is null then.",
		Why:  "The expression fails: with failurePolicy Fail nothing can be deleted, and namespaces do not terminate; with Ignore the policy has no effect on deletions.",
		Fix:  "Read oldObject, or guard by request.operation != \"DELETE\".",
		check: func(c *checker) {
			for _, p := range c.Policies {
				reported := map[string]bool{}
				for _, t := range c.targets(p) {
					if p.Mutating || !matcher.Names(p.rules()[t.rule].RuleWithOperations, admissionregistrationv1.Delete) {
						continue
					}
					e, why := p.evaluate(t, admissionregistrationv1.Delete, false)
					if why == "" || reported[e.pointer] || !slices.ContainsFunc(reads.Of(e.text, p.texts()), func(r reads.Read) bool { return r.Root == reads.Object }) {
						continue
					}
					reported[e.pointer] = true
					level, effect := Warning, "deletions are not checked"
					if p.failsClosed() && len(p.enforcing()) > 0 {
						level, effect = Error, "nothing can be deleted"
					}
					c.find(p.Object, level, e.pointer, fmt.Sprintf("%s fails for the deletion of a %s, where object is null: %s", e.field(), t.Kind, effect))
				}
			}
		},
	}
}

// texts returns the policy's variables.
func (p *Policy) texts() map[string]string {
	out := map[string]string{}
	for _, v := range p.variables() {
		out[v.Name] = v.Expression
	}
	return out
}

func leak() Rule {
	return Rule{
		ID: "policy-leak", Levels: []Level{Warning}, Source: incidents,
		What: "No message and no audit annotation has data of a Secret.",
		Why:  "Messages go to the user and to logs of clients, audit annotations to the audit log. Both are read by more people than the Secret.",
		Fix:  "Name the key, not its value.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.Mutating {
					continue
				}
				secrets := slices.ContainsFunc(c.targets(p), func(t target) bool { return t.Group == "" && t.Kind == "Secret" })
				ofSecret := p.paramGVK().Group == "" && p.paramGVK().Kind == "Secret"
				for _, e := range p.of(messages, annotates) {
					if slices.ContainsFunc(reads.Of(e.text, p.texts()), func(r reads.Read) bool {
						of := secrets && (r.Root == reads.Object || r.Root == reads.OldObject) || ofSecret && r.Root == reads.Params
						return of && !r.Shallow && (len(r.Path) == 0 || (r.Path[0] == "data" || r.Path[0] == "stringData"))
					}) {
						c.find(p.Object, Warning, e.pointer, e.field()+" has data of a Secret")
					}
				}
			}
		},
	}
}

func cost() Rule {
	return Rule{
		ID: "policy-cost", Levels: []Level{Warning}, Source: docsVAP,
		What: "No expression has three loops within each other over lists of the object.",
		Why:  "An expression may cost a million steps. With a hundred elements in each list, three loops exceed that, and the evaluation fails: larger objects can no longer be written.",
		Fix:  "Compare sets, such as a.map(x, x.name).all(n, n in b), or limit the lists first.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for _, e := range p.all() {
					if n := loops(e.tree); n >= 3 {
						c.find(p.Object, Warning, e.pointer, fmt.Sprintf("%s has %d loops within each other: it may exceed the cost that the API server allows", e.field(), n))
					}
				}
			}
		},
	}
}
