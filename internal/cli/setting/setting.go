// SPDX-License-Identifier: Apache-2.0

// Package setting binds flags to the fields of settings, and locates problems of settings. A
// setting is a field of a struct, named by its path in JSON, whichever way its value comes: from a
// flag, a file or Go code.
package setting

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
)

type (
	// Value is the value of a flag.
	Value = pflag.Value
	// SliceValue is a value with several entries.
	SliceValue = pflag.SliceValue
)

// Flag is a flag that sets a field.
type Flag struct {
	Name, Short string
	// Field is the path of the field.
	Field string
	// Group is the title in the help of serve, which has a flag only for what differs between
	// installations; the other settings are in its file. An application has all flags.
	Group string
	// Usage is in the format of [pflag.UnquoteUsage].
	Usage string
	// Optional is the value of a flag that is given without one; empty if it needs one.
	Optional string
	// Choices are the accepted values; nil if there are too many.
	Choices []string
	// Of is the name of the value: a file and a directory are completed.
	Of string
	// Value returns the value of the flag for a pointer to the field. Nil if pflag has one
	// for the type.
	Value func(pointer any) Value
}

// Flags returns the flags that the tags of the settings, a pointer to a struct, declare, in the order
// of the fields. Their usage is the comment of the field.
func Flags(settings any) []Flag {
	var flags []Flag
	tags.Walk(reflect.ValueOf(settings).Elem(), nil, func(s tags.Setting) {
		tag, path := s.Tag, s.Path.String()
		if name := tag.Get("flag"); name != "" {
			flags = append(flags, Flag{
				Name: name, Short: tag.Get("short"), Field: path, Group: tag.Get("group"), Of: tag.Get("value"),
				Usage: help[s.Of.Type().String()+"."+path[strings.LastIndexByte(path, '.')+1:]], Optional: tag.Get("optional"), Choices: tags.Enum(s.StructField),
			})
		}
	})
	return flags
}

// annotation of a flag is the path of its field.
const annotation = "sallyport.io/field"

// Bind adds a flag that sets a field of the settings, a pointer to a struct. The field's value is
// the default.
func Bind(cmd *cobra.Command, settings any, f Flag) {
	AddTo(cmd.Flags(), settings, f)
	switch {
	case len(f.Choices) > 0:
		cli.CompleteChoices(cmd, f.Name, f.Choices)
	case f.Of == "file":
		cli.CompleteFiles(cmd, f.Name)
	case f.Of == "directory":
		cli.CompleteFolders(cmd, f.Name)
	}
}

// AddTo is Bind without completion.
func AddTo(flags *pflag.FlagSet, settings any, f Flag) {
	pointer := Lookup(settings, f.Field).Addr().Interface()
	if f.Value != nil {
		pointer = f.Value(pointer)
	}
	switch p := pointer.(type) {
	case pflag.Value:
		flags.VarP(p, f.Name, f.Short, f.Usage)
	case *string:
		flags.StringVarP(p, f.Name, f.Short, *p, f.Usage)
	case *bool:
		flags.BoolVarP(p, f.Name, f.Short, *p, f.Usage)
	case *int32:
		flags.Int32VarP(p, f.Name, f.Short, *p, f.Usage)
	case *int64:
		flags.Int64VarP(p, f.Name, f.Short, *p, f.Usage)
	case *time.Duration:
		flags.DurationVarP(p, f.Name, f.Short, *p, f.Usage)
	case *[]string:
		flags.StringSliceVarP(p, f.Name, f.Short, *p, f.Usage)
	default: // a string type
		flags.VarP(text{reflect.ValueOf(pointer).Elem()}, f.Name, f.Short, f.Usage)
	}
	if f.Optional != "" {
		flags.Lookup(f.Name).NoOptDefVal = f.Optional
	}
	_ = flags.SetAnnotation(f.Name, annotation, []string{f.Field}) // the flag exists
}

// Lookup returns the field of a struct, or of what a pointer points to, at a path. It panics if
// there is none: paths are constants.
func Lookup(settings any, path string) reflect.Value {
	value := reflect.Indirect(reflect.ValueOf(settings))
	for name := range strings.SplitSeq(path, ".") {
		f, ok := tags.Fields(value.Type())[name]
		if !ok {
			panic("no field " + path)
		}
		value = value.FieldByIndex(f.Index)
	}
	return value
}

// FieldOf returns the path of the field that a flag sets, or nothing.
func FieldOf(flag *pflag.Flag) string {
	if paths := flag.Annotations[annotation]; len(paths) > 0 {
		return paths[0]
	}
	return ""
}

// Set returns the flag that sets a field or contains it, among those that are set or among all;
// nil if there is none.
func Set(flags *pflag.FlagSet, path string, all bool) *pflag.Flag {
	var found *pflag.Flag
	visit := flags.Visit
	if all {
		visit = flags.VisitAll
	}
	visit(func(flag *pflag.Flag) {
		if rest, ok := strings.CutPrefix(path, FieldOf(flag)); ok && FieldOf(flag) != "" && (rest == "" || rest[0] == '[' || rest[0] == '.') {
			found = flag
		}
	})
	return found
}

// ByFlags prepends the name of the flag to each problem of a field, in all joined errors.
func ByFlags(flags *pflag.FlagSet, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs := slices.Clone(joined.Unwrap())
		for i := range errs {
			errs[i] = ByFlags(flags, errs[i])
		}
		return errors.Join(errs...)
	}
	path := ""
	if problem := (*field.Error)(nil); errors.As(err, &problem) {
		path = problem.Field
	} else if problem := (*Problem)(nil); errors.As(err, &problem) {
		path = problem.Field
	}
	if flag := Set(flags, path, true); flag != nil {
		return fmt.Errorf("--%s: %w", flag.Name, err)
	}
	return err
}

// Problem is a problem of a field that has a cause.
type Problem struct {
	Field string
	Err   error
}

// Error implements error.
func (p *Problem) Error() string { return p.Field + ": " + p.Err.Error() }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// ValidateSelection reports entries of a setting that select nothing; see [cli.Selects].
func ValidateSelection(path string, selection, names []string) field.ErrorList {
	var errs field.ErrorList
	for _, entry := range selection {
		if name := strings.TrimPrefix(entry, "-"); entry != "*" && !slices.Contains(names, name) {
			errs = append(errs, field.NotSupported(field.NewPath(path), name, names))
		}
	}
	return errs
}

// Join joins the problems of fields.
func Join(list field.ErrorList) error {
	errs := make([]error, len(list))
	for i := range list {
		errs[i] = list[i]
	}
	return errors.Join(errs...)
}

// text is the value of a flag for a string type.
type text struct{ field reflect.Value }

// Set implements [pflag.Value].
func (t text) Set(value string) error {
	t.field.SetString(value)
	return nil
}

// String implements [pflag.Value].
func (t text) String() string {
	if !t.field.IsValid() {
		return ""
	}
	return t.field.String()
}

// Type implements [pflag.Value].
func (t text) Type() string { return "string" }
