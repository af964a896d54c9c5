// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A drawing draws policies, some of which are wrong.
type drawing struct{ *rand.Rand }

func (d drawing) one(of ...string) string { return of[d.IntN(len(of))] }

// rarely returns one of the values, and mostly the first.
func (d drawing) rarely(first string, others ...string) string {
	if d.IntN(16) > 0 {
		return first
	}
	return d.one(others...)
}

// condition draws an expression. One in ten does not compile; others fail when they are evaluated.
func (d drawing) condition(params, variable bool) string {
	switch d.IntN(10) {
	case 0:
		return "(" + d.condition(params, variable) + d.one(" && ", " || ") + d.condition(params, variable) + ")"
	case 1:
		return "!" + "(" + d.condition(params, variable) + ")"
	case 2:
		return d.one("object.metadata.name ==", "object.metadata.nam", "'text'", "1 + 'a' == 'b'", "unknown(object)", "params.data.k == 'v'", "variables.y == 1", "object.spec.containers.all(c)", "oldObject.foo.size()", "'a'.matches('[')", "[1].includes(2)")
	case 3:
		return d.one("object.metadata.annotations['a'] == 'b'", "object.spec.absent == 1", "int('a') == 1", "1 / int(object.metadata.labels.zero) == 1", "object.spec.containers[5].name == 'c'", "object.spec.tolerations[0].key", "namespaceObject.metadata.labels.absent == 'x'")
	case 4:
		if params {
			return d.one("params.data.k == 'v'", "params != null", "params == null || params.data.k == 'w'", "has(params.data.absent)")
		}
		fallthrough
	case 5:
		if variable {
			return d.one("variables.x > 1", "variables.x == 1")
		}
		fallthrough
	default:
		return d.one("object.metadata.name.startsWith('p')", "'l' in object.metadata.labels", "object.metadata.labels.l == 'v'", "object.spec.containers.all(c, c.image.contains(':'))", "object.spec.containers.exists(c, c.name == 'c')",
			"has(object.spec.hostNetwork)", "request.operation == 'CREATE'", "namespaceObject.metadata.name == request.namespace", "oldObject == null", "size(object.spec.containers) < 3", "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
			"object.metadata.?labels[?'x'].orValue('') == ''", "[1, 2].exists(x, x == 2)", "format.dns1123Label().validate(object.metadata.name).hasValue()", "isSemver('1.2.3')", "isIP('10.0.0.1')", "object.spec.restartPolicy == 'Always'",
			"object.spec.tolerations.map(t, t.key).join(',') == 'b'", "lists.range(3).size() == 3", "request.userInfo.username == 'nobody'", "object.spec.containers[0].?resources.limits.hasValue()")
	}
}

func quoted(expression string) string { return "'" + strings.ReplaceAll(expression, "'", "''") + "'" }

// value draws a value for a field of a patch.
func (d drawing) value() string {
	return d.one("'v'", "'text'", "object.metadata.name", "object.metadata.labels.l", "string(size(object.spec.containers))", "1", "true", "object.metadata.absent", "params.data.k", "variables.x", "null", "{'a': 'b'}", "['a']", "object.metadata.labels", "['a', 1]")
}

func (d drawing) patch() string {
	operation := d.rarely("add", "replace", "remove", "test", "move", "copy", "delete")
	path := d.one("/metadata/labels/n", "/metadata/labels/l", "/metadata/annotations", "/metadata/annotations/a", "/spec/terminationGracePeriodSeconds", "/spec/tolerations/-", "/spec/containers/0/env", "/spec/containers/0/args", "/spec/hostname", "/spec/absent", "metadata/labels/n", "/metadata/labels/' + jsonpatch.escapeKey('a/b') + '")
	out := fmt.Sprintf("JSONPatch{op: '%s', path: '%s'", operation, path)
	switch operation {
	case "remove":
	case "move", "copy":
		out += ", from: '" + d.one("/metadata/labels/l", "/metadata/labels/absent") + "'"
	default:
		value := d.value()
		switch {
		case strings.HasSuffix(path, "annotations") && d.IntN(3) > 0:
			value = "{'a': " + d.one("'b'", "object.metadata.name") + "}"
		case strings.HasSuffix(path, "/-") && d.IntN(3) > 0:
			value = d.one("Object.spec.tolerations{key: 'a', operator: 'Exists'}", "{'key': 'a', 'operator': 'Exists'}")
		case strings.HasSuffix(path, "env") && d.IntN(3) > 0:
			value = d.one("[{'name': 'E', 'value': 'e'}]", "[Object.spec.containers.env{name: 'E', value: 'e'}]")
		case strings.HasSuffix(path, "args") && d.IntN(3) > 0:
			value = "['a', object.metadata.name]"
		case strings.HasSuffix(path, "Seconds") && d.IntN(3) > 0:
			value = "5"
		}
		out += ", value: " + value
	}
	return out + "}"
}

// mutation draws a mutation of a policy.
func (d drawing) mutation(params, variable bool) string {
	if d.IntN(2) == 0 {
		expression := "[" + d.patch() + "]"
		if d.IntN(4) == 0 {
			expression = d.condition(params, variable) + " ? " + expression + " : [" + d.patch() + "]"
		}
		return "{patchType: " + d.rarely("JSONPatch", "ApplyConfiguration", "Patch") + ", jsonPatch: {expression: " + quoted(expression) + "}}"
	}
	expression := "Object{" + d.one(
		"metadata: Object.metadata{labels: {'n': "+d.one("'v'", "object.metadata.name", "1", "object.metadata.labels.absent", "string(size(object.spec.containers))")+"}}",
		"metadata: Object.metadata{annotations: {'a': "+d.one("'v'", "object.metadata.name")+"}}",
		"spec: Object.spec{containers: [Object.spec.containers{name: 'c', env: [Object.spec.containers.env{name: 'E', value: 'e'}]}]}",
		"spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['a']}]}",
		"spec: Object.spec{terminationGracePeriodSeconds: "+d.one("5", "'5'", "object.spec.terminationGracePeriodSeconds + 1")+"}",
		"spec: Object.spec{"+d.one("hostname: 'h'", "hostNam: 'h'", "tolerations: [Object.spec.tolerations{key: 'a'}]", "containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})")+"}",
	) + "}"
	if d.IntN(6) == 0 {
		expression = d.condition(params, variable) + " ? " + expression + " : Object{}"
	}
	return "{patchType: ApplyConfiguration, applyConfiguration: {expression: " + quoted(expression) + "}}"
}

// policy draws a policy for pods of a namespace, its binding, and perhaps its parameter. All have the name of the namespace. Mutating
// policies are of a version.
func (d drawing) policy(namespace, mutatingVersion string) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	kind, params, variable := d.one("Validating", "Mutating"), d.IntN(3) == 0, d.IntN(3) == 0
	version := "v1"
	if kind == "Mutating" {
		version = mutatingVersion
	}
	add("apiVersion: admissionregistration.k8s.io/%s\nkind: %sAdmissionPolicy\nmetadata: {name: %s}\nspec:", version, kind, namespace)
	operations := d.rarely("[CREATE]", "[CREATE, UPDATE]", "['*']", "[UPDATE]", "[CREATE, CREATE]", "[create]")
	if kind == "Validating" {
		operations = d.rarely(operations, "[CREATE, DELETE]")
	}
	add("  matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}%s, resourceRules: [{apiGroups: [%s], apiVersions: [%s], operations: %s, resources: [%s]%s}]}", namespace,
		d.rarely("", ", objectSelector: {matchLabels: {l: v}}", ", objectSelector: {matchLabels: {l: other}}", ", matchPolicy: Exact", ", matchPolicy: Some", ", excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], resourceNames: [p]}]"),
		d.rarely("''", "'*'", "apps"), d.rarely("v1", "'*'", "v2"), operations, d.rarely("pods", "'*'", "pods/*", "'*/*'", "pods, pods", "services"), d.rarely("", ", scope: Namespaced", ", scope: Cluster", ", resourceNames: [p]", ", resourceNames: [q]"))
	if policy := d.rarely("", "Ignore", "Ignore", "Ignore", "Never"); policy != "" {
		add("  failurePolicy: %s", policy)
	}
	if params {
		add("  paramKind: %s", d.rarely("{apiVersion: v1, kind: ConfigMap}", "{apiVersion: v1, kind: Secret}", "{kind: ConfigMap}"))
	}
	if variable {
		add("  variables: [{name: %s, expression: %s}]", d.rarely("x", "'1x'"), quoted(d.rarely("size(object.spec.containers)", "1 +", "params.data.k", "object.absent")))
	}
	if d.IntN(3) == 0 {
		add("  matchConditions: [{name: %s, expression: %s}]", d.rarely("a", "'a b'", "''"), quoted(d.condition(params, false)))
	}
	if kind == "Mutating" {
		add("  reinvocationPolicy: %s", d.rarely("Never", "IfNeeded", "Always"))
		add("  mutations: [%s]", d.mutation(params, variable))
	} else {
		add("  validations:")
		for range 1 + d.IntN(2) {
			add("  - expression: %s", quoted(d.condition(params, variable)))
			if message := d.rarely("", "message: not so", "messageExpression: '\"name \" + object.metadata.name'", "messageExpression: '1'", "messageExpression: 'object.absent'", "messageExpression: '\" \"'", "message: ' '"); message != "" {
				add("    %s", message)
			}
			if reason := d.rarely("", "Forbidden", "Unauthorized", "Odd"); reason != "" {
				add("    reason: %s", reason)
			}
		}
		if d.IntN(6) == 0 {
			add("  auditAnnotations: [{key: %s, valueExpression: %s}]", d.rarely("k", "'a b'"), quoted(d.rarely("object.metadata.name", "1", "null", "object.absent")))
		}
	}
	add("---\napiVersion: admissionregistration.k8s.io/%[3]s\nkind: %[1]sAdmissionPolicyBinding\nmetadata: {name: %[2]s}\nspec:\n  policyName: %[2]s", kind, namespace, version)
	if params || d.IntN(12) == 0 {
		add("  paramRef: {%s%s}", d.rarely("name: p", "name: absent", "selector: {matchLabels: {a: b}}", "selector: {}", "name: p, selector: {}"), d.rarely(", parameterNotFoundAction: Deny", ", parameterNotFoundAction: Allow", "", ", namespace: "+namespace+", parameterNotFoundAction: Allow"))
	}
	if kind == "Validating" {
		add("  validationActions: %s", d.rarely(d.one("[Deny]", "[Warn]", "[Deny, Audit]"), "[Audit]", "[Deny, Warn]", "[Deny, Deny]", "[]", "[Refuse]"))
	}
	if match := d.rarely("", "{objectSelector: {matchLabels: {l: v}}}", "{objectSelector: {matchLabels: {l: other}}}", "{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}", "{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]}"); match != "" {
		add("  matchResources: %s", match)
	}
	return strings.Join(out, "\n")
}
