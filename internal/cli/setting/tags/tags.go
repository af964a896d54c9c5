// SPDX-License-Identifier: Apache-2.0

// Package tags reads what the tags of a setting declare beside its name in a file. Enum, min and max
// limit its values, and with names the value of another setting of the struct that it needs, or that
// requires it; flag, short, value, group and optional are its flag. A setting is a field of a struct,
// named by its path in JSON.
package tags

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Setting is a setting with its value.
type Setting struct {
	reflect.StructField
	Value reflect.Value
	Path  *field.Path
	Of    reflect.Value // the struct that declares it
}

// Walk visits the settings of a struct and its sections, below a path, in the order in which they
// are declared.
func Walk(settings reflect.Value, path *field.Path, visit func(Setting)) {
	for i := range settings.NumField() {
		f, value := settings.Type().Field(i), settings.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && value.Kind() == reflect.Struct:
			Walk(value, path, visit)
		case name == "" || name == "-":
		case value.Kind() == reflect.Struct:
			Walk(value, path.Child(name), visit)
		default:
			visit(Setting{f, value, path.Child(name), settings})
		}
	}
}

// Fields returns the fields of a struct by their names in JSON.
func Fields(of reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f
		}
	}
	return fields
}

// Enum returns the values that a field accepts; nil if there are too many.
func Enum(f reflect.StructField) []string {
	if values := f.Tag.Get("enum"); values != "" {
		return strings.Split(values, ",")
	}
	return nil
}

// with returns an error if a setting is there without the setting that it needs, or the other way round.
func (s *Setting) with() *field.Error {
	condition, required := strings.CutSuffix(s.Tag.Get("with"), ",required")
	name, want, ok := strings.Cut(condition, "=")
	empty := s.Value.IsZero() || s.Value.Kind() == reflect.Slice && s.Value.Len() == 0
	if !ok || empty && !required {
		return nil
	}
	switch other := s.Of.FieldByIndex(Fields(s.Of.Type())[name].Index).String(); {
	case other != want && !empty:
		return field.Forbidden(s.Path, "only with the "+name+" "+want)
	case other == want && empty:
		return field.Required(s.Path, "the "+name+" "+want+" needs it")
	}
	return nil
}

// Validate reports the settings of a struct, a pointer, whose values their tags do not accept, below
// a path. Of an enum that is optional, the empty value is accepted.
func Validate(settings any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	Walk(reflect.ValueOf(settings).Elem(), path, func(s Setting) {
		value := reflect.Indirect(s.Value)
		if !value.IsValid() { // a nil pointer
			return
		}
		if err := s.with(); err != nil {
			errs = append(errs, err)
		}
		known := Enum(s.StructField)
		if optional := strings.HasSuffix(s.Tag.Get("json"), ",omitempty") && s.Value.IsZero(); known != nil && !optional && !slices.Contains(known, value.String()) {
			errs = append(errs, field.NotSupported(s.Path, value.String(), known))
		}
		if minimum, maximum := Limits(s.StructField); value.CanInt() && (value.Int() < minimum || value.Int() > maximum) {
			errs = append(errs, field.Invalid(s.Path, shown(value), requirement(minimum, maximum)))
		}
	})
	return errs
}

// Limits returns the minimum and the maximum of a field of integers; those of a duration are nanoseconds.
func Limits(f reflect.StructField) (minimum, maximum int64) {
	return limit(f.Tag.Get("min"), math.MinInt64), limit(f.Tag.Get("max"), math.MaxInt64)
}

func limit(text string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return otherwise
}

func requirement(minimum, maximum int64) string {
	switch {
	case maximum != math.MaxInt64:
		return fmt.Sprintf("must be between %d and %d", minimum, maximum)
	case minimum == 0:
		return "must not be negative"
	case minimum == 1:
		return "must be positive"
	default:
		return fmt.Sprintf("must be at least %d", minimum)
	}
}

func shown(value reflect.Value) any {
	if d, ok := value.Interface().(time.Duration); ok {
		return d.String()
	}
	return value.Interface()
}
