// SPDX-License-Identifier: Apache-2.0

package export

import (
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

const remedy = ", or exclude the pod with the annotation " + meta.ExcludeAnnotation + `: "true"`

// messageExpression begins like the webhook's denial. It contains no values.
var messageExpression = "\"conflict occurred while applying poddefaults: \" + variables.names.join(\",\") + \" on pod: \" + " +
	"object.metadata.?name.orValue(object.metadata.?generateName.orValue(\"\")) + \" err: \" + variables.conflicts.join(\"; \") + " +
	quote(" (values hidden). Change the pod or a PodDefault"+remedy)

// noText is an empty list of strings. The type of [] would be a list of anything.
const noText = "[\"\"].filter(s, false)"

// disagreements returns a variable: a list of texts about how the finished pod
// conflicts with the object. It ignores missing elements, because containers may have
// been added after the last mutation.
func (n *namespace) disagreements(o *object) string {
	says := func(place string) string { return o.String() + ": " + place }
	var out []string
	tell := func(condition, place string) {
		out = append(out, condition+" ? ["+quote(says(place)+": the pod has another")+"] : []")
	}
	for _, m := range o.maps() {
		for _, e := range m.wanted {
			value := quote(e.Value)
			tell(m.parent+".?"+m.field+"[?"+quote(e.Key)+"].orValue("+value+") != "+value, m.title+" "+e.Key)
		}
	}
	lists := o.podLists()
	if o.denies() {
		lists = append(lists, o.tolerations())
	}
	for _, l := range lists {
		for _, e := range l.elements {
			tell(differs(l.of("object.spec"), e), l.title+" "+e.key)
		}
	}
	for _, l := range o.containerLists() {
		for _, e := range l.elements {
			tell(besideOf(l)+".exists(e, "+e.same+") || "+differs(l.of("object.spec"), e), l.title+" "+e.key)
		}
	}
	for _, field := range ordered {
		if value := o.value(field); value != nil && o.denies() {
			tell(scalar{field: field}.differs("object.spec", value), field)
		}
	}
	for _, s := range o.podScalars() {
		tell(s.differs("object.spec", s.value), s.field)
	}
	scalars, commands := o.ownScalars()
	for _, s := range scalars {
		out = append(out, "object.spec.containers.filter(c, "+n.takes(n.settings.MeshContainers)+" && "+s.differs("c", s.value)+
			").map(c, "+saysOfContainer(says(s.field))+")")
	}
	for _, l := range o.ownLists() {
		var differing []string
		for _, e := range l.elements {
			differing = append(differing, differs("S", e)+" ? ["+saysOfContainer(says(l.title+" "+e.key))+"] : []")
		}
		if len(differing) > 0 {
			out = append(out, "object.spec.containers.filter(c, "+n.takes(n.settings.MeshContainers)+").map(c, ["+
				l.narrowed("c")+"].map(S, "+flatten(differing)+").flatten()).flatten()")
		}
	}
	if o.denies() {
		for _, c := range commands {
			out = append(out, "object.spec.containers.filter(c, "+n.takes(n.settings.CommandExcluded)+" && size("+c.ofContainer()+
				") > 0 && c."+c.field+" != "+literalOf(c.value)+").map(c, "+saysOfContainer(says(c.field))+")")
		}
	}
	if len(out) == 0 {
		return noText
	}
	// A pod marked by another revision keeps what that revision gave it.
	mark := "[object.metadata.?annotations[?" + quote(o.MarkKey) + "]].exists(m, m == optional.of(" + quote(o.ResourceVersion) +
		") || m.hasValue() && (\",\" + object.metadata.annotations[?" + quote(meta.RevisionsAnnotation) + "].orValue(\"\") + \",\").contains(" +
		quote(","+o.Name()+"@"+o.Revision()+",") + "))"
	return "variables." + o.selected + " && " + mark + " ? " + flatten(out) + " : []"
}

// saysOfContainer returns an expression for a text about the container c.
func saysOfContainer(place string) string {
	return quote(place+" of container ") + " + c.name + \": the pod has another\""
}

// differs reports whether the last element with the key, which is the effective one,
// differs from the wanted one.
func differs(list string, e element) string {
	if e.satisfied == "true" {
		return "false"
	}
	return "[" + list + ".filter(e, " + e.same + ")].exists(L, size(L) > 0 && [L[size(L) - 1]].exists(e, !(" + e.satisfied + ")))"
}
