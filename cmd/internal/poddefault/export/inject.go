// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// The mutations add missing elements by key and ignore existing ones, which the other
// policy checks. Values are literals. Values copied from the pod cannot be encoded once
// any policy of the cluster has had a match condition (k8s.io/apiserver 1.37,
// UseSchemalessTypeRef).

// ordered are fields of the pod's spec of which the last one applied wins, if no object denies.
var ordered = []string{accountField, plan.AutomountField}

const accountField = "serviceAccountName"

// Names with which the API server's ServiceAccount plugin mounts a token.
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// operation returns an expression for one JSON Patch operation. The path is an
// expression too.
func operation(path, value string) string {
	return "JSONPatch{op: \"add\", path: " + path + ", value: " + value + "}"
}

// unless returns an expression for an operation, or for none if the condition holds.
func unless(condition, operation string) string {
	return condition + " ? [] : [" + operation + "]"
}

// injection returns the mutation of objects that share no place, see [namespace.steps].
// It first creates the maps and lists that the pod lacks, once for all objects.
func (n *namespace) injection(objects []*object) string {
	var ops, ofContainers []string
	for _, h := range holders(objects) {
		op := unless("!("+h.wanted+") || size("+h.expression+") > 0", operation(h.path, h.empty))
		if h.inContainers {
			ofContainers = append(ofContainers, op)
		} else {
			ops = append(ops, op)
		}
	}
	if len(ofContainers) > 0 {
		ops = append(ops, n.ofContainers(n.settings.MeshContainers, ofContainers))
	}
	for _, o := range objects {
		ops = append(ops, "variables."+o.selected+" ? "+flatten(n.additions(o))+" : []")
	}
	return flatten(ops)
}

// additions returns lists of operations, for maps and lists that exist.
func (n *namespace) additions(o *object) []string {
	var ops []string
	for _, m := range o.maps(o.mark()) {
		ops = append(ops, m.add()...)
	}
	for _, l := range o.podLists() {
		ops = append(ops, l.add("\"/spec/"+l.field+"\"", "object.spec")...)
	}
	ops = append(ops, n.tolerations(o)...)
	for _, l := range o.containerLists() {
		ops = append(ops, addContainers(l)...)
	}
	for _, field := range ordered {
		value := o.value(field)
		if value == nil {
			continue
		}
		same, own := "object.spec.?"+field+" == optional.of("+literalOf(value)+")", "has(object.spec."+field+")"
		if account := "object.spec.?" + field + ".orValue(\"\")"; field == accountField {
			same, own = account+" == "+literalOf(value), account+" != \"\" && "+account+" != \"default\""
		}
		fixed := own
		if !o.denies() {
			fixed = same + n.orKept(o, own, field)
		}
		ops = append(ops, unless(fixed, operation("\"/spec/"+field+"\"", literalOf(value))))
	}
	for _, s := range o.podScalars() {
		ops = append(ops, s.add("\"/spec/"+s.field+"\"", "object.spec"))
	}
	var own, whole []string
	scalars, commands := o.ownScalars()
	for _, s := range scalars {
		own = append(own, s.add(pathInContainer(s.field), "c"))
	}
	for _, l := range o.ownLists() {
		own = append(own, l.add(pathInContainer(l.field), "c")...)
	}
	for _, c := range commands {
		whole = append(whole, unless("size("+c.ofContainer()+") > 0", operation(pathInContainer(c.field), literalOf(c.value))))
	}
	if len(own) > 0 {
		ops = append(ops, n.ofContainers(n.settings.MeshContainers, own))
	}
	if len(whole) > 0 {
		ops = append(ops, n.ofContainers(n.settings.CommandExcluded, whole))
	}
	return ops
}

// ofContainers returns an expression for operations on every container c at index i that is
// not excluded.
func (n *namespace) ofContainers(excluded, operations []string) string {
	return "object.spec.containers.transformList(i, c, " + n.takes(excluded) + ", " + flatten(operations) + ").flatten()"
}

// pathInContainer is an expression for the path of a field of the container at index i.
func pathInContainer(field string) string {
	return "\"/spec/containers/\" + string(i) + \"/" + field + "\""
}

// takes reports whether the container c gets what PodDefaults add to every container.
func (n *namespace) takes(excluded []string) string {
	condition := "!(c.name in variables.injected)"
	if len(excluded) > 0 {
		condition += " && !(c.name in " + literal(excluded) + ")"
	}
	return condition
}

// add adds missing keys.
func (m stringMap) add() []string {
	var ops []string
	for _, e := range m.wanted {
		ops = append(ops, unless(quote(e.Key)+" in "+m.of(), operation(quote(m.path+jsonpatch.Pointer(e.Key)), quote(e.Value))))
	}
	return ops
}

// add adds missing elements to a list, which is a field of the holder.
func (l list) add(path, holder string) []string {
	if len(l.elements) == 0 {
		return nil
	}
	var missing []string
	for _, e := range l.elements {
		missing = append(missing, unless("S.exists(e, "+e.same+")", operation(behind(path), literalOf(e.value))))
	}
	return []string{"[" + l.narrowed(holder) + "].map(S, " + flatten(missing) + ").flatten()"}
}

// behind returns the end of the list at a path, whose expression ends in a literal.
func behind(path string) string { return strings.TrimSuffix(path, `"`) + `/-"` }

// addContainers adds containers whose names are in neither list of the pod.
func addContainers(l list) []string {
	var ops []string
	expression, beside := l.of("object.spec"), besideOf(l)
	for _, e := range l.elements {
		there := expression + ".exists(e, " + e.same + ") || " + beside + ".exists(e, " + e.same + ")"
		ops = append(ops, unless(there, operation("\"/spec/"+l.field+"/-\"", literalOf(e.value))))
	}
	return ops
}

func besideOf(l list) string {
	if l.field == "containers" {
		return list{field: "initContainers"}.of("object.spec")
	}
	return list{field: "containers"}.of("object.spec")
}

// tolerations adds missing tolerations, and sets the tolerationSeconds of the last one
// that is otherwise equal.
func (n *namespace) tolerations(o *object) []string {
	l := o.tolerations()
	expression := l.of("object.spec")
	var ops []string
	for _, e := range l.elements {
		path := "\"/spec/tolerations/\" + string(L[size(L) - 1]) + \"/tolerationSeconds\""
		last := expression + "[L[size(L) - 1]].?tolerationSeconds"
		var tune string
		if seconds := secondsOf(e.value); seconds == nil {
			tune = last + ".hasValue() ? [JSONPatch{op: \"remove\", path: " + path + "}] : []"
		} else {
			tune = "[" + operation(path, literalOf(seconds)) + "]"
		}
		if untuned := last + " == optional.of(300)"; o.denies() {
			tune = untuned + " ? (" + tune + ") : []"
		} else if denied := n.deniedBefore(o, func(earlier *object) bool {
			return slices.ContainsFunc(earlier.Tolerations, func(other plan.Item) bool { return other.Key == e.key })
		}); denied != "" {
			tune = "!" + denied + " || " + untuned + " ? (" + tune + ") : []"
		}
		ops = append(ops, "["+expression+".transformList(i, e, "+e.same+", i)].map(L, size(L) == 0 ? ["+
			operation("\"/spec/tolerations/-\"", literalOf(e.value))+"] : ("+tune+")).flatten()")
	}
	return ops
}

// deniedBefore returns an expression for whether an object selects the pod that is applied before
// o, denies conflicts, and sets what is asked for; it is empty if there is none. What that object
// finds in the pod, o leaves there: conflicts are looked for in the finished pod.
func (n *namespace) deniedBefore(o *object, sets func(*object) bool) string {
	var selected []string
	for _, earlier := range n.objects[:slices.Index(n.objects, o)] {
		if earlier.denies() && sets(earlier) {
			selected = append(selected, "variables."+earlier.selected)
		}
	}
	if len(selected) == 0 {
		return ""
	}
	return "(" + strings.Join(selected, " || ") + ")"
}

// orKept returns the end of a condition: the pod has a value of its own for the field, and
// [namespace.deniedBefore] holds.
func (n *namespace) orKept(o *object, own, field string) string {
	denied := n.deniedBefore(o, func(earlier *object) bool { return earlier.value(field) != nil })
	if denied == "" {
		return ""
	}
	return " || " + denied + " && " + own
}

// tokens returns variables about the token that the ServiceAccount plugin mounts before
// policies run.
func (n *namespace) tokens() []admissionregistrationv1.Variable {
	var tokenless []string
	for _, o := range n.objects {
		if o.takesToken() {
			takes := "variables." + o.selected
			if o.denies() { // a pod keeps what an earlier version gave it
				takes = "(" + takes + " && object.spec.?automountServiceAccountToken != optional.of(true))"
			}
			tokenless = append(tokenless, takes)
		}
	}
	if len(tokenless) == 0 {
		return nil
	}
	return []admissionregistrationv1.Variable{
		{Name: "tokenless", Expression: strings.Join(tokenless, " || ")},
		{Name: "tokens", Expression: "object.spec.?volumes.orValue([]).filter(v, " + isToken + ").map(v, v.name)"},
	}
}

const isToken = "v.name.startsWith(\"" + tokenVolumePrefix + "\") && has(v.projected)"

// closing returns the last mutation, which lists the decisions and removes tokens.
func (n *namespace) closing() string {
	key := quote(meta.DecisionsAnnotation)
	ops := []string{"[object.metadata.?annotations[?" + key + "].orValue(\"\")].map(listed, " +
		"listed != \"\" && variables.names.all(n, n in listed.split(\",\")) ? [] : [" +
		operation(quote("/metadata/annotations"+jsonpatch.Pointer(meta.DecisionsAnnotation)), "variables.names.join(\",\")") + "]).flatten()"}
	if len(n.tokens()) > 0 {
		// Backwards, because each removal shifts the elements after it.
		remove := func(list, element, condition, path string) string {
			return "[" + list + ".transformList(j, " + element + ", " + condition + ", j)].map(L, " +
				"L.transformList(k, unused, JSONPatch{op: \"remove\", path: " + path + " + string(L[size(L) - 1 - k])})).flatten()"
		}
		mounts := func(field string) string {
			return "object.spec.?" + field + ".orValue([]).transformList(i, c, " + remove("c.?volumeMounts.orValue([])", "m",
				"m.mountPath == \""+tokenMountPath+"\" && m.name in variables.tokens", "\"/spec/"+field+"/\" + string(i) + \"/volumeMounts/\"") + ").flatten()"
		}
		for _, removal := range []string{
			mounts("containers"), mounts("initContainers"), remove("object.spec.?volumes.orValue([])", "v", isToken, "\"/spec/volumes/\""),
		} {
			ops = append(ops, "!variables.tokenless ? [] : "+removal)
		}
	}
	return "size(variables.names) == 0 ? [] : " + flatten(ops)
}

func (o *object) containerNames() []string {
	var names []string
	for _, container := range slices.Concat(o.InitContainers, o.Containers) {
		names = append(names, container.Key)
	}
	return names
}
