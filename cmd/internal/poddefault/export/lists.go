// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// list is what an object adds to one list of the pod or of a container.
type list struct {
	field    string
	title    string // of an element, for messages
	member   string // see comparison
	elements []element
}

// element is a wanted element. Its expressions refer to an element e of the pod.
type element struct {
	key       string // for messages
	same      string // whether e has the key
	satisfied string // whether e, with the same key, satisfies it
	value     any    // decoded
}

// of returns an expression for the pod's list.
func (l list) of(holder string) string { return holder + ".?" + l.field + ".orValue([])" }

// narrowed returns an expression for the list elements with any wanted key. Searching
// the whole list for each wanted element would be too expensive for large pods. Map
// lookups are nearly free.
func (l list) narrowed(holder string) string {
	if l.member == "" {
		return l.of(holder)
	}
	keys := map[string]string{}
	for _, e := range l.elements {
		keys[e.key] = ""
	}
	return "[" + literal(keys) + "].map(K, " + l.of(holder) + ".filter(e, e.?" + l.member + ".orValue(\"\") in K))[0]"
}

// A comparison says how the elements of a list are compared with those of the pod.
type comparison struct {
	member    string                  // identifies an element; empty if same does
	same      func(wanted any) string // whether e has the key of the wanted one
	satisfied func(wanted any) string // whether e, with the same key, satisfies it
}

// comparisons are those of the lists of a pod and its containers, by field.
var comparisons = map[string]comparison{
	plan.VolumeList:         {member: "name", satisfied: satisfiesVolume},
	plan.PullSecretList:     {member: "name", satisfied: always},
	plan.TolerationList:     {same: sameToleration, satisfied: satisfiesSeconds},
	plan.InitContainersList: {member: "name", satisfied: satisfiesSubset},
	plan.ContainersList:     {member: "name", satisfied: satisfiesSubset},
	plan.EnvList:            {member: "name", satisfied: satisfiesExactly[corev1.EnvVar](envDefaults)},
	plan.EnvFromList:        {same: sameEnvFrom, satisfied: always},
	plan.MountList:          {member: "mountPath", satisfied: satisfiesExactly[corev1.VolumeMount](mountDefaults)},
	"hostAliases":           {member: "ip", satisfied: satisfiesSubset},
	"resourceClaims":        {member: "name", satisfied: satisfiesExactly[corev1.PodResourceClaim](nil)},
	"schedulingGates":       {member: "name", satisfied: always},
	"readinessGates":        {member: "conditionType", satisfied: always},
}

func listOf(field string, kind *plan.ListKind, items []plan.Item) list {
	by := comparisons[field]
	l := list{field: field, title: kind.Name, member: by.member}
	for _, item := range items {
		e := element{key: item.Key, value: plan.Decode(item.Value)}
		if by.same == nil {
			e.same = text(by.member, item.Key)
		} else {
			e.same = by.same(e.value)
		}
		e.satisfied = by.satisfied(e.value)
		l.elements = append(l.elements, e)
	}
	return l
}

func text(field, value string) string { return "e.?" + field + ".orValue(\"\") == " + quote(value) }

func always(any) string { return "true" }

// podLists returns the lists of the pod's spec except containers and tolerations.
func (o *object) podLists() []list {
	lists := []list{listOf(plan.VolumeList, plan.VolumeKind, o.Volumes), listOf(plan.PullSecretList, plan.PullSecretKind, o.PullSecrets)}
	for _, l := range o.PodLists {
		lists = append(lists, listOf(l.Tokens[0], l.Kind, l.Items))
	}
	return lists
}

// tolerations returns the object's tolerations, identified by everything but
// tolerationSeconds.
func (o *object) tolerations() list {
	return listOf(plan.TolerationList, plan.TolerationKind, o.Tolerations)
}

// containerLists returns the containers that the object adds, in order.
func (o *object) containerLists() []list {
	return []list{
		listOf(plan.InitContainersList, plan.ContainerKind, o.InitContainers), listOf(plan.ContainersList, plan.ContainerKind, o.Containers),
	}
}

// ownLists returns the lists of every container.
func (o *object) ownLists() []list {
	return []list{listOf(plan.EnvList, plan.EnvKind, o.Env), listOf(plan.EnvFromList, plan.EnvFromKind, o.EnvFrom), listOf(plan.MountList, plan.MountKind, o.VolumeMounts)}
}

// sameEnvFrom compares prefix, the names of both sources, and optional.
func sameEnvFrom(wanted any) string {
	prefix, _ := wanted.(map[string]any)["prefix"].(string)
	terms, optional := []string{text("prefix", prefix)}, false
	for _, field := range []string{"configMapRef", "secretRef"} {
		source, _ := wanted.(map[string]any)[field].(map[string]any)
		name, _ := source["name"].(string)
		terms, optional = append(terms, text(field+".?name", name)), optional || source["optional"] == true
	}
	return strings.Join(terms, " && ") + " && (e.?configMapRef.?optional.orValue(false) || e.?secretRef.?optional.orValue(false)) == " + literal(optional)
}

func sameToleration(wanted any) string {
	member := func(field string) string {
		value, _ := wanted.(map[string]any)[field].(string)
		return value
	}
	operator := text("operator", member("operator"))
	if slices.Contains([]string{"", string(corev1.TolerationOpEqual)}, member("operator")) {
		operator = "e.?operator.orValue(\"\") in [\"\", \"Equal\"]"
	}
	return text("key", member("key")) + " && " + operator + " && " + text("value", member("value")) + " && " + text("effect", member("effect"))
}

// secondsOf returns the tolerationSeconds of a wanted toleration, or nil.
func secondsOf(wanted any) any { return wanted.(map[string]any)["tolerationSeconds"] }

func satisfiesSeconds(wanted any) string {
	if seconds := secondsOf(wanted); seconds != nil {
		return "e.?tolerationSeconds == optional.of(" + literalOf(seconds) + ")"
	}
	return "!has(e.tolerationSeconds)"
}

// scalar is a field with one value, of the pod's spec or of every container.
type scalar struct {
	field string
	value any
}

// unset are the API server's defaults of scalars, which count as unset.
var unset = map[string]any{
	"dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "schedulerName": corev1.DefaultSchedulerName, "terminationMessagePolicy": "File",
}

// podScalars returns the fields that the object sets in the pod's spec, except those that have
// an order.
func (o *object) podScalars() (out []scalar) {
	for _, f := range o.PodValues {
		if len(f.Tokens) == 1 && !slices.Contains(ordered, f.Tokens[0]) {
			out = append(out, scalar{f.Tokens[0], plan.Decode(f.Value)})
		}
	}
	return out
}

// value returns what the object sets a field of the pod's spec to, or nil.
func (o *object) value(field string) any {
	for _, f := range o.PodValues {
		if len(f.Tokens) == 1 && f.Tokens[0] == field {
			return plan.Decode(f.Value)
		}
	}
	return nil
}

// takesToken reports whether pods that get the object have no token.
func (o *object) takesToken() bool { return o.value(plan.AutomountField) == false }

// ownScalars returns the fields that the object sets in every container, and commands the lists
// that are set as a whole if they are absent.
func (o *object) ownScalars() (scalars, commands []scalar) {
	for _, f := range o.ContainerValues {
		if s := (scalar{f.Tokens[0], plan.Decode(f.Value)}); f.Rule.Command {
			commands = append(commands, s)
		} else {
			scalars = append(scalars, s)
		}
	}
	return scalars, commands
}

// add sets the field, unless the holder has a value.
func (s scalar) add(path, holder string) string {
	fixed := "has(" + holder + "." + s.field + ")"
	if none := unset[s.field]; none != nil {
		fixed = s.differs(holder, none)
	}
	return unless(fixed, operation(path, literalOf(s.value)))
}

// differs reports whether the holder has another value.
func (s scalar) differs(holder string, value any) string {
	return holder + ".?" + s.field + ".orValue(" + literalOf(value) + ") != " + literalOf(value)
}

// ofContainer returns an expression for the list of the container c.
func (s scalar) ofContainer() string { return "c.?" + s.field + ".orValue([])" }

// A stringMap is what an object adds to a map of the pod.
type stringMap struct {
	title               string // of an entry, for messages
	parent, field, path string
	wanted              []podmeta.Entry
}

// of returns an expression for the pod's map.
func (m stringMap) of() string { return m.parent + ".?" + m.field + ".orValue({})" }

// maps returns the maps that the object adds to. Marks are the annotations that mark the pod.
func (o *object) maps(marks ...podmeta.Entry) []stringMap {
	var nodes []podmeta.Entry
	for _, f := range o.PodValues {
		if f.Tokens[0] == "nodeSelector" {
			nodes = append(nodes, podmeta.Entry{Key: f.Tokens[1], Value: string(plan.Text(f.Value))})
		}
	}
	return []stringMap{
		{"label", "object.metadata", "labels", plan.LabelsPath, o.Labels},
		{"annotation", "object.metadata", "annotations", plan.AnnotationsPath, slices.Concat(o.Annotations, marks)},
		{"nodeSelector", "object.spec", "nodeSelector", "/spec/nodeSelector", nodes},
	}
}

// mark is the annotation of pods that get the object.
func (o *object) mark() podmeta.Entry {
	return podmeta.Entry{Key: o.MarkKey, Value: o.ResourceVersion}
}
