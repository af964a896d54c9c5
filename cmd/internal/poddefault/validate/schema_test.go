// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/golden"
)

// TestGeneratedSchemas checks that the definitions contain what a schema can express of
// the table of rules and of [Limits], and with -update writes it. It uses keywords of JSON
// schema and no CEL: they have no cost limit, whatever the length of lists, and API servers
// ratchet them like CEL rules.
func TestGeneratedSchemas(t *testing.T) {
	for name, spec := range map[string]reflect.Type{
		"kubeflow.org_poddefaults.yaml":        reflect.TypeFor[kubeflowv1alpha1.PodDefaultSpec](),
		"sallyport.io_clusterpoddefaults.yaml": reflect.TypeFor[sallyportv1alpha1.ClusterPodDefaultSpec](),
	} {
		file := "../../../../config/crd/" + name
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition map[string]any
		if err := yaml.Unmarshal(data, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition["spec"].(map[string]any)["versions"].([]any) {
			root := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			constrain(spec, root["properties"].(map[string]any)["spec"].(map[string]any), nil)
		}
		out, err := yaml.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		if golden.Update() {
			if err := os.WriteFile(file, out, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(string(data), string(out)); diff != "" {
			t.Errorf("%s is not up to date, run make generate (-is +should be):\n%s", name, diff)
		}
	}
}

// constrain writes the rules of a type, and of everything below it, into its schema. It
// is idempotent.
func constrain(t reflect.Type, schema map[string]any, outer map[string]fieldRule) {
	for ; t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice; t = t.Elem() {
		if t.Kind() == reflect.Slice {
			schema, _ = schema["items"].(map[string]any)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	if t.Kind() != reflect.Struct || properties == nil {
		return
	}
	rules := fieldRules[t]
	if rules == nil {
		rules = outer
	}
	var members []string
	group, grouped := fieldGroups[t]
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			constrain(f.Type, schema, rules)
			continue
		}
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		if grouped && (len(group.fields) == 0 || slices.Contains(group.fields, name)) {
			members = append(members, name)
		}
		constrainLength(t, f.Type, name, property)
		if rule, ok := rules[name]; ok {
			constrainField(f.Type, &rule, name, property, schema)
		}
		constrain(f.Type, property, nil)
	}
	if grouped {
		constrainGroup(group, members, len(properties), schema)
	}
}

// constrainLength limits a list or map, unless a marker of the type says less.
func constrainLength(of, t reflect.Type, name string, property map[string]any) {
	keyword, limit := "maxItems", int64(MaxList)
	switch {
	case t.Kind() == reflect.Map:
		keyword = "maxProperties"
	case t.Kind() != reflect.Slice:
		return
	case of == reflect.TypeFor[kubeflowv1alpha1.PodDefaultSpec]() && (name == "initContainers" || name == "sidecars"):
		limit = MaxBrought
	case of == reflect.TypeFor[corev1.NodeSelector]():
		limit = MaxNodeTerms
	case of == reflect.TypeFor[corev1.PodDNSConfig]() && name == "nameservers":
		limit = 3
	case of == reflect.TypeFor[corev1.PodDNSConfig]() && name == "searches":
		limit = 32
	}
	if _, marked := property[keyword]; !marked {
		property[keyword] = limit
	}
}

func constrainField(t reflect.Type, rule *fieldRule, name string, property, parent map[string]any) {
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	if rule.required && (!pointer || t.Kind() == reflect.Struct) {
		required, _ := parent["required"].([]any)
		if !slices.Contains(required, any(name)) {
			required = append(required, name)
			slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			parent["required"] = required
		}
	}
	switch t.Kind() {
	case reflect.Slice:
		if rule.required {
			property["minItems"] = 1
		}
		if items, ok := property["items"].(map[string]any); ok {
			element := rule.ofElements()
			constrainField(t.Elem(), &element, "", items, map[string]any{})
		}
	case reflect.Map:
		if values, ok := property["additionalProperties"].(map[string]any); ok {
			constrainField(t.Elem(), rule, "", values, map[string]any{})
		}
	case reflect.String:
		choices := slices.Clone(rule.choices)
		if rule.choices != nil && !rule.required && !slices.Contains(choices, "") {
			choices = append([]string{""}, choices...)
		}
		if choices != nil {
			property["enum"] = choices
		}
		if rule.required && choices == nil {
			property["minLength"] = 1
		}
		if f := rule.format; f != nil && f.pattern != "" {
			property["pattern"] = f.pattern
			if !rule.required {
				property["pattern"] = "^$|" + f.pattern
			}
		}
		if f := rule.format; f != nil && f.length > 0 {
			property["maxLength"] = f.length
		}
	case reflect.Int32, reflect.Int64:
		if rule.min != nil {
			property["minimum"] = *rule.min
		}
		if rule.max != nil {
			property["maximum"] = *rule.max
		}
	}
}

// constrainGroup counts properties where there are no others, or too many to name.
func constrainGroup(group fieldGroup, members []string, properties int, schema map[string]any) {
	switch others := properties - len(members); {
	case others == 0:
		schema["maxProperties"] = 1
		if group.exactly {
			schema["minProperties"] = 1
		}
	case group.exactly:
		var one []any
		for _, name := range members {
			one = append(one, map[string]any{"required": []any{name}})
		}
		schema["oneOf"] = one
	default:
		schema["maxProperties"] = others + 1
	}
}

// Each rule belongs to an existing field.
func TestRulesAreOfFieldsThatThereAre(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			visit(t.Field(i).Type)
		}
	}
	visit(reflect.TypeFor[kubeflowv1alpha1.PodDefaultSpec]())
	for of, rules := range fieldRules {
		names := map[string]bool{}
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			if !names[name] {
				t.Errorf("%s has no field %s", of, name)
			}
		}
		if !seen[of] {
			t.Errorf("%s is in no PodDefault", of)
		}
	}
	for of := range typeRules {
		if !seen[of] {
			t.Errorf("%s is in no PodDefault", of)
		}
	}
}
