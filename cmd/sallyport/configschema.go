// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/sallyport-io/sallyport/api/config/v1alpha1"
)

func newConfigSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a configuration",
		Long: "Schema prints a JSON Schema (draft 7) of the configuration, for editors and for tools that check files\n" +
			"before they are used. The chart checks its value config by the same schema. What no schema can say,\n" +
			"'sallyport config check' does.",
		Example: "  sallyport config schema > sallyport.schema.json",
		Args:    noArguments("there is one schema for all configurations"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema := configSchema()
			schema["$schema"] = "http://json-schema.org/draft-07/schema#"
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(schema)
		},
	}
}

// A jsonSchema is a JSON Schema of draft 7, or a part of one.
type jsonSchema map[string]any

// configSchema is what [readConfig] takes, as far as a schema can say it.
func configSchema() jsonSchema {
	schema := schemaOf(reflect.TypeFor[configv1alpha1.SallyportConfiguration](), newServeCommand())
	properties := schema["properties"].(jsonSchema)
	properties["apiVersion"] = jsonSchema{"const": configv1alpha1.APIVersion}
	properties["kind"] = jsonSchema{"const": configv1alpha1.Kind}
	schema["required"] = []string{"apiVersion", "kind"}

	webhook := properties["webhooks"].(jsonSchema)["items"].(jsonSchema)
	fields := webhook["properties"].(jsonSchema)
	fields["name"] = jsonSchema{"enum": allBuiltinNames()}
	for _, choice := range webhookChoices(&configv1alpha1.Webhook{}) {
		fields[choice.field] = jsonSchema{"enum": choice.choices}
	}
	webhook["required"] = []string{"name"}
	// The settings of each webhook are its own.
	var perWebhook []jsonSchema
	settings := defaultBuiltinSettings()
	for _, name := range allBuiltinNames() {
		perWebhook = append(perWebhook, jsonSchema{
			"if": jsonSchema{"properties": jsonSchema{"name": jsonSchema{"const": name}}},
			"then": jsonSchema{"properties": jsonSchema{
				"settings": schemaOf(reflect.TypeOf(settings.of(name)), nil),
			}},
		})
	}
	webhook["allOf"] = perWebhook
	return schema
}

// schemaOf describes a type by its JSON. A field with a flag of the command that has one
// of a few values has those alone.
func schemaOf(t reflect.Type, cmd *cobra.Command) jsonSchema {
	switch {
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), cmd)
	case t == reflect.TypeFor[metav1.Duration]():
		return jsonSchema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	case t == reflect.TypeFor[json.RawMessage]():
		return jsonSchema{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := jsonSchema{}
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			schema := schemaOf(field.Type, cmd)
			if flag := field.Tag.Get("flag"); flag != "" && schema["type"] == "string" {
				if choices := choicesOf(cmd, flag); len(choices) > 0 {
					schema = jsonSchema{"enum": choices}
				}
			}
			properties[name] = schema
		}
		return jsonSchema{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		return jsonSchema{"type": "array", "items": schemaOf(t.Elem(), cmd)}
	case reflect.Map:
		return jsonSchema{"type": "object", "additionalProperties": schemaOf(t.Elem(), cmd)}
	case reflect.Bool:
		return jsonSchema{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return jsonSchema{"type": "integer"}
	default:
		return jsonSchema{"type": "string"}
	}
}

// choicesOf are the values that shells offer for a flag; none if it may have any.
func choicesOf(cmd *cobra.Command, flag string) []string {
	complete, ok := cmd.GetFlagCompletionFunc(flag)
	if !ok {
		return nil
	}
	choices, directive := complete(cmd, nil, "")
	if directive != cobra.ShellCompDirectiveNoFileComp {
		return nil
	}
	return slices.Clone(choices)
}
