// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// Converter converts objects of one kind between all of its versions. [Converter.Problems]
// reports the problems of its definition. It is immutable and safe for concurrent use.
type Converter struct {
	kind     schema.GroupKind
	plural   string
	versions []string
	between  between
	problem  error
}

// between converts an object from one of the converter's versions to a different one, and
// appends the result to dst.
type between interface {
	convert(ctx context.Context, dst []byte, in *rawobject.Object, from, to int) ([]byte, error)
	// prototype returns an empty object of a version, or nil if it has no Go type.
	prototype(version int) runtime.Object
}

func newConverter(kind schema.GroupKind, versions []string, between between, problems ...error) Converter {
	for i, version := range versions {
		for _, problem := range validation.IsDNS1035Label(version) {
			problems = append(problems, fmt.Errorf("version %q: %s", version, problem))
		}
		if slices.Contains(versions[:i], version) {
			problems = append(problems, fmt.Errorf("version %s is given twice", version))
		}
	}
	if len(versions) < 2 && errors.Join(problems...) == nil {
		problems = append(problems, fmt.Errorf("there is one version, %s: nothing to convert", strings.Join(versions, "")))
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return Converter{kind: kind, plural: plural.Resource, versions: versions, between: between, problem: errors.Join(problems...)}
}

// WithPlural sets the plural of the kind, if the guess is wrong ("crontabs" for CronTab). The
// name of the CustomResourceDefinition begins with it.
func (c Converter) WithPlural(plural string) Converter {
	c.plural = plural
	return c
}

// WithProblem adds an error to the result of [Converter.Problems], for adapters that create
// converters from other types.
func (c Converter) WithProblem(err error) Converter {
	c.problem = errors.Join(c.problem, err)
	return c
}

// Kind returns the converter's kind.
func (c Converter) Kind() schema.GroupKind { return c.kind }

// CRD returns the name of the kind's CustomResourceDefinition, "plural.group".
func (c Converter) CRD() string { return c.plural + "." + c.kind.Group }

// Versions returns all versions of the converter: the hub first, the others sorted by name.
func (c Converter) Versions() []string { return slices.Clone(c.versions) }

// New returns an empty object of a version, with apiVersion and kind set, or nil if the
// converter has no Go type for it.
func (c Converter) New(version string) runtime.Object {
	i := slices.Index(c.versions, version)
	if i < 0 || c.between == nil {
		return nil
	}
	object := c.between.prototype(i)
	if object != nil {
		object.GetObjectKind().SetGroupVersionKind(c.kind.WithVersion(version))
	}
	return object
}

// Problems reports all problems of the converter's definition.
func (c Converter) Problems() error {
	err := c.problem
	if err == nil && c.between == nil {
		return errors.New("the converter is empty: make it with HubAndSpokes, Functions, Unstructured or APIVersionOnly")
	}
	if err == nil {
		for _, problem := range validation.IsDNS1123Label(c.plural) {
			err = errors.Join(err, fmt.Errorf("plural %q: %s", c.plural, problem))
		}
	}
	if err != nil && c.kind.Kind != "" {
		return fmt.Errorf("converter of %s: %w", c.kind, err)
	}
	return err
}

// Covers reports which of the versions, for example those that a
// CustomResourceDefinition serves, are not converted. An unserved version should be
// covered too: the garbage collector and managed fields still use it.
func (c Converter) Covers(versions ...string) error {
	var missing []string
	for _, version := range versions {
		if !slices.Contains(c.versions, version) {
			missing = append(missing, version)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("converter of %s: no path from and to version %s: it converts %s",
			c.kind, strings.Join(missing, ", "), strings.Join(c.versions, ", "))
	}
	return nil
}

// Append converts an object to a version of its group and appends the result to dst. It does
// not change an object that has that version already. The error describes a problem of the
// object or its converter without quoting the content, except in errors from the author's
// functions. It is a [*PanicError] if one of them panicked. The content of dst beyond its
// original length is undefined after an error.
func (c Converter) Append(ctx context.Context, dst []byte, in *rawobject.Object, version string) (_ []byte, err error) {
	group, from := rawobject.SplitAPIVersion(in.APIVersion)
	switch {
	case group != c.kind.Group || in.Kind != c.kind.Kind:
		return dst, fmt.Errorf("is a %s of group %s: this converter is for %s", in.Kind, group, c.kind)
	case in.At.Metadata.Empty():
		return dst, errors.New("has no metadata")
	}
	i, j := slices.Index(c.versions, from), slices.Index(c.versions, version)
	switch {
	case i < 0:
		return dst, fmt.Errorf("has version %s, which has no converter: want one of %s", brief(from), strings.Join(c.versions, ", "))
	case j < 0:
		return dst, fmt.Errorf("there is no converter to version %s: there are %s", brief(version), strings.Join(c.versions, ", "))
	case i == j:
		return append(dst, in.Raw...), nil
	case c.problem != nil || c.between == nil:
		return dst, errors.New("the converter is not valid: see its Validate")
	}
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return c.between.convert(ctx, dst, in, i, j)
}

// Convert converts the bytes of an object to a version of its group, as [Converter.Append] does.
func (c Converter) Convert(ctx context.Context, raw []byte, version string) ([]byte, error) {
	in, err := rawobject.Parse(raw)
	if err != nil {
		return nil, err
	}
	return c.Append(ctx, nil, in, version)
}

// PanicError is a panic in the author's code.
type PanicError struct {
	// Value may contain parts of the object. Do not log it or send it to clients.
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return "the converter panicked" }

// brief returns a version from the request if it is short enough to be one.
func brief(version string) string {
	if len(version) > validation.DNS1035LabelMaxLength {
		return fmt.Sprintf("(%d bytes)", len(version))
	}
	return fmt.Sprintf("%q", version)
}

// appendHead appends the beginning of an object, up to the metadata.
func appendHead(dst []byte, kind schema.GroupKind, version string) ([]byte, error) {
	dst = append(dst, `{"apiVersion":"`...)
	if kind.Group != "" {
		dst = append(append(dst, kind.Group...), '/')
	}
	dst = append(append(dst, version...), `","kind":`...)
	return appendString(dst, kind.Kind)
}

func appendString(dst []byte, s string) ([]byte, error) { return jsontext.AppendQuote(dst, s) }
