// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
)

// A Schema is a JSON Schema of draft 7, or a part of one.
type Schema map[string]any

// FileSchema describes the input of [Load], as far as a JSON Schema can.
func FileSchema() Schema {
	schema := schemaOf(reflect.TypeFor[configv1alpha1.SallyportConfiguration](), "")
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	properties := schema["properties"].(Schema)
	properties["apiVersion"] = Schema{"const": configv1alpha1.APIVersion}
	properties["kind"] = Schema{"const": configv1alpha1.Kind}
	schema["required"] = []string{"apiVersion", "kind"}

	webhook := properties["webhooks"].(Schema)["items"].(Schema)
	fields := webhook["properties"].(Schema)
	fields["name"] = Schema{"enum": Names()}
	webhook["required"] = []string{"name"}
	// Each webhook has its own settings.
	var perWebhook []Schema
	settings := DefaultSettings()
	for _, name := range Names() {
		perWebhook = append(perWebhook, Schema{
			"if": Schema{"properties": Schema{"name": Schema{"const": name}}},
			"then": Schema{"properties": Schema{
				"settings": schemaOf(reflect.TypeOf(settings[name]), ""),
			}},
		})
	}
	webhook["allOf"] = perWebhook
	return schema
}

// schemaOf describes a type by its JSON encoding. Path is the field's path in the file. A field
// with a fixed set of values becomes an enum.
func schemaOf(t reflect.Type, path string) Schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), path)
	case t == reflect.TypeFor[metav1.Duration](), t == reflect.TypeFor[time.Duration]():
		return Schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	case t == reflect.TypeFor[json.RawMessage]():
		return Schema{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := Schema{}
		for name, field := range setting.Fields(t) {
			properties[name] = schemaOf(field.Type, strings.TrimPrefix(path+"."+name, "."))
		}
		return Schema{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		return Schema{"type": "array", "items": schemaOf(t.Elem(), path)}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": schemaOf(t.Elem(), path)}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return Schema{"type": "integer"}
	default:
		if known := choices(path); len(known) > 0 {
			return Schema{"enum": known}
		}
		return Schema{"type": "string"}
	}
}
