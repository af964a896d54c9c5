// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/hosting"
)

// A Schema is a JSON Schema of draft 7, or a part of one.
type Schema map[string]any

// FileSchema describes the input of [Load], as far as a JSON Schema can.
func FileSchema() Schema {
	schema := schemaOf(reflect.TypeFor[configv1alpha1.SallyportConfiguration](), "", reflect.StructField{})
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
				"settings": schemaOf(reflect.TypeOf(settings[name]), "", reflect.StructField{}),
			}},
		})
	}
	webhook["allOf"] = perWebhook
	return schema
}

// schemaOf describes a type by its JSON encoding. Path is the path in the file of the field, which
// may accept only some values.
func schemaOf(t reflect.Type, path string, of reflect.StructField) Schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), path, of)
	case t == reflect.TypeFor[metav1.Duration](), t == reflect.TypeFor[time.Duration]():
		return Schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	case t == reflect.TypeFor[json.RawMessage]():
		return Schema{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := Schema{}
		for name, field := range tags.Fields(t) {
			properties[name] = schemaOf(field.Type, strings.TrimPrefix(path+"."+name, "."), field)
		}
		return Schema{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		return Schema{"type": "array", "items": schemaOf(t.Elem(), path, of)}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": schemaOf(t.Elem(), path, of)}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		schema := Schema{"type": "integer"}
		minimum, maximum := tags.Limits(of)
		if minimum != math.MinInt64 {
			schema["minimum"] = minimum
		}
		if maximum != math.MaxInt64 {
			schema["maximum"] = maximum
		}
		return schema
	default:
		if known := append(tags.Enum(of), hosting.Choices(path, authenticationModes)...); known != nil {
			return Schema{"enum": known}
		}
		return Schema{"type": "string"}
	}
}
