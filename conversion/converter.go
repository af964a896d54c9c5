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

	"github.com/sallyport-io/sallyport/internal/rawobject"
)

// Converter converts the objects of one kind from each of its versions to each other.
// [Converter.Validate] reports the problems of its definition. It is not
// changed once made, and may be used by many goroutines at one time.
type Converter struct {
	kind     schema.GroupKind
	plural   string
	versions []string
	between  between
	problem  error
}

// between converts an object whose version is from, another one of the converter's,
// and appends the result to dst.
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

// WithPlural says the plural of the kind where it is not the one that is guessed
// ("crontabs" of CronTab): the CustomResourceDefinition is named by it.
func (c Converter) WithPlural(plural string) Converter {
	c.plural = plural
	return c
}

// WithProblem adds an error to those that [Converter.Validate] reports, for adapters that make
// converters of something else.
func (c Converter) WithProblem(err error) Converter {
	c.problem = errors.Join(c.problem, err)
	return c
}

// Kind is what is converted.
func (c Converter) Kind() schema.GroupKind { return c.kind }

// CRD is the name of the CustomResourceDefinition of the kind, "plural.group".
func (c Converter) CRD() string { return c.plural + "." + c.kind.Group }

// Versions are all that objects are converted between, a hub first, the others by
// their names.
func (c Converter) Versions() []string { return slices.Clone(c.versions) }

// New returns an empty object of a version, with its kind and version set, or nil if
// the converter has no Go type for it.
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

// Validate reports all problems of the converter's definition.
func (c Converter) Validate() error {
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

// Append converts an object to a version of its group and appends the result to dst.
// An object that has that version is taken as it is. The error says what is wrong with
// the object or with its converter and repeats nothing of the content, other than
// what the functions of the author say; it is a [*PanicError] if one of them panicked.
// What dst then holds behind its former end is not defined.
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
		return dst, fmt.Errorf("has version %s, from which there is no converter: there are %s", brief(from), strings.Join(c.versions, ", "))
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

// PanicError is a panic of what an author wrote.
type PanicError struct {
	// Value may hold parts of the object, and so is not for logs and answers.
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return "the converter panicked" }

// brief is a version of the caller's, if it is no longer than versions are.
func brief(version string) string {
	if len(version) > validation.DNS1035LabelMaxLength {
		return fmt.Sprintf("(%d bytes)", len(version))
	}
	return fmt.Sprintf("%q", version)
}

// appendHead begins an object of a version, up to the metadata.
func appendHead(dst []byte, kind schema.GroupKind, version string) ([]byte, error) {
	dst = append(dst, `{"apiVersion":"`...)
	if kind.Group != "" {
		dst = append(append(dst, kind.Group...), '/')
	}
	dst = append(append(dst, version...), `","kind":`...)
	return appendString(dst, kind.Kind)
}

func appendString(dst []byte, s string) ([]byte, error) { return jsontext.AppendQuote(dst, s) }
