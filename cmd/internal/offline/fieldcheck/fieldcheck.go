// SPDX-License-Identifier: Apache-2.0

// Package fieldcheck checks objects as the API server does before it calls webhooks.
package fieldcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Treatment of unknown fields, as in kubectl --validate.
const (
	Strict = "strict"
	Warn   = "warn"
	Ignore = "ignore"
)

// Modes are all modes, the default first.
var Modes = []string{Strict, Warn, Ignore}

// A Checker checks objects as the API server does before it calls webhooks: unknown
// fields, types and, for custom resources, the schema. It does not know the API
// server's other checks of built-in kinds.
type Checker struct {
	mode    string
	notes   io.Writer
	known   *Definitions
	untyped map[string]bool // kinds without a known type
}

// New returns a checker that knows definitions in addition to the project's.
func New(mode string, notes io.Writer, definitions *Definitions) *Checker {
	return &Checker{mode: mode, notes: notes, known: definitions, untyped: map[string]bool{}}
}

// Check checks objects. The error reports all problems. Problems of objects that the
// API server has already stored are warnings.
func (c *Checker) Check(ctx context.Context, objects ...*manifest.Object) error {
	return c.checkAll(ctx, false, objects...)
}

// checkAll only warns of unknown fields if the place of the object was guessed.
func (c *Checker) checkAll(ctx context.Context, guessed bool, objects ...*manifest.Object) error {
	var errs []error
	for _, o := range objects {
		if o.IsAdmissionReview() { // its content comes from the API server
			continue
		}
		unknown, invalid := c.problems(ctx, o)
		switch stored := o.UID != ""; {
		case c.mode == Ignore:
			unknown = nil
		case c.mode == Warn || stored || guessed:
			c.warn(unknown)
			unknown = nil
		}
		if o.UID != "" {
			c.warn(invalid)
			invalid = nil
		}
		found := slices.Concat(unknown, invalid)
		slices.SortStableFunc(found, func(a, b error) int { return cmp.Compare(manifest.LineOf(a), manifest.LineOf(b)) })
		errs = append(errs, found...)
	}
	if len(c.untyped) > 0 {
		manifest.Note(c.notes, "note: the fields of %s are not checked: no CustomResourceDefinition was given", strings.Join(slices.Sorted(maps.Keys(c.untyped)), ", "))
		clear(c.untyped)
	}
	return errors.Join(errs...)
}

// CheckPod checks a pod from an owner of an unknown kind; others are checked with their
// owner, or themselves. It notes if the template was found only by its shape.
func (c *Checker) CheckPod(ctx context.Context, pod *workload.Pod) error {
	by := pod.MadeBy
	if by == nil {
		return nil
	}
	if pod.Guessed {
		manifest.Note(c.notes, "note: %s: the kind %s is not known: a pod template was found at %s; labels and names that its controller gives are left out",
			by.At(), by.GVK().GroupKind(), pod.Template)
	}
	switch definition, err := c.known.of(by.GVK()); {
	case err != nil:
		return by.ErrorAt("/apiVersion", err.Error())
	case definition != nil, goType(by.GVK()) != nil:
		return nil
	}
	return c.checkAll(ctx, pod.Guessed, pod.Object)
}

func (c *Checker) warn(problems []error) {
	for _, problem := range problems {
		manifest.Note(c.notes, "warning: %v", problem)
	}
}

// problems returns the problems of an object.
func (c *Checker) problems(ctx context.Context, o *manifest.Object) (unknown, invalid []error) {
	into := goType(o.GVK())
	definition, err := c.known.of(o.GVK())
	if err != nil {
		return nil, []error{o.ErrorAt("/apiVersion", err.Error())}
	}
	if into == nil && definition == nil {
		c.untyped[o.GVK().GroupKind().String()] = true
	}
	if into != nil {
		strict, err := kjson.UnmarshalStrict(o.Raw, into)
		if err != nil {
			// This decoder reports the field and its line.
			if better := o.Decode(goType(o.GVK())); better != nil {
				err = better
			} else {
				err = o.ErrorAt("", err.Error())
			}
			return nil, []error{err}
		}
		for _, problem := range strict {
			path := ""
			if of := kjson.FieldError(nil); errors.As(problem, &of) {
				path = of.FieldPath()
			}
			if !strings.HasPrefix(problem.Error(), "unknown field") {
				unknown = append(unknown, o.ErrorAt("", problem.Error()))
				continue
			}
			tokens := pathTokens(path)
			unknown = append(unknown, unknownField(o, tokens, fieldsOfType(into, tokens)))
		}
	}
	var fields field.ErrorList
	if definition == nil {
		fields = append(fields, metav1validation.ValidateLabels(o.Labels, field.NewPath("metadata", "labels"))...)
		fields = append(fields, validation.ValidateAnnotations(o.Annotations, field.NewPath("metadata", "annotations"))...)
	} else {
		var more []string
		if more, fields, err = definition.check(ctx, o); err != nil {
			return unknown, []error{o.ErrorAt("", err.Error())}
		}
		if into == nil {
			for _, path := range more {
				tokens := pathTokens(path)
				unknown = append(unknown, unknownField(o, tokens, definition.fields(tokens)))
			}
		}
	}
	for _, err := range fields {
		invalid = append(invalid, invalidField(o, err))
	}
	return unknown, invalid
}

// goType returns a value of a kind's Go type, or nil.
func goType(gvk schema.GroupVersionKind) any {
	switch gvk {
	case kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind):
		return &kubeflowv1alpha1.PodDefault{}
	case sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind):
		return &sallyportv1alpha1.ClusterPodDefault{}
	case apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"):
		return &apiextensionsv1.CustomResourceDefinition{}
	}
	if into, err := scheme.Scheme.New(gvk); err == nil {
		return into
	}
	return nil
}

// unknownField returns the error for an unknown field, given the valid names.
func unknownField(o *manifest.Object, tokens, siblings []string) error {
	at := jsontext.Pointer(jsonpatch.Pointer(tokens...))
	text := fmt.Sprintf("unknown field %q", o.FieldPath(at))
	if len(tokens) > 0 {
		if like := closest(tokens[len(tokens)-1], siblings); like != "" {
			text += fmt.Sprintf(": did you mean %s?", like)
		}
	}
	return o.ErrorAt(at, text)
}

// WithoutValue returns the detail of an error without the value, which may be secret, and without the field,
// which some details repeat.
func WithoutValue(err *field.Error) string {
	detail := err.Detail
	if value, ok := err.BadValue.(string); ok && value != "" && err.Type != field.ErrorTypeTypeInvalid {
		detail = strings.ReplaceAll(detail, fmt.Sprintf("%q", value), "it")
	}
	return strings.TrimPrefix(strings.TrimPrefix(detail, err.Field), " in body ")
}

// invalidField describes an invalid field without its value, which may be secret.
func invalidField(o *manifest.Object, err *field.Error) error {
	tokens := pathTokens(err.Field)
	at := jsontext.Pointer(jsonpatch.Pointer(tokens...))
	detail := WithoutValue(err)
	text := err.Type.String()
	if detail != "" {
		text += ": " + detail
	}
	if path := o.FieldPath(at); path != "" {
		text = path + ": " + text
	}
	return o.ErrorAt(at, text)
}

// pathTokens splits a field path in Kubernetes' form, "a.b[0].c" or "a.b[key.of/map]".
// "<nil>" is the whole object.
func pathTokens(path string) []string {
	var tokens []string
	for rest := strings.TrimPrefix(path, "<nil>"); rest != ""; {
		rest = strings.TrimPrefix(rest, ".")
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			token, after, _ := strings.Cut(inner, "]")
			tokens, rest = append(tokens, token), after
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			tokens = append(tokens, rest[:end])
		}
		rest = rest[end:]
		if end == 0 && !strings.HasPrefix(rest, "[") && !strings.HasPrefix(rest, ".") {
			break
		}
	}
	return tokens
}

// closest returns the name that was most likely intended, or "".
func closest(word string, names []string) string {
	best, found := 3, ""
	slices.Sort(names)
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < best && d < len(name) {
			best, found = d, name
		}
	}
	return found
}

// distance counts inserted, deleted, replaced and transposed letters.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j], rows[i][j-1], rows[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
