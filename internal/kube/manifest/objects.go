// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// An Object is a Kubernetes object from a file.
type Object struct {
	document *Document
	pointer  jsontext.Pointer // its position in the document; not the root for a list item

	// Raw is the object as JSON.
	Raw jsontext.Value
	// MadeBy is set if another object would create this one.
	MadeBy *Object
	metav1.TypeMeta
	metav1.ObjectMeta
}

// At returns the object's source for messages: "<file>:<line>", or "cluster".
func (o *Object) At() string {
	if o.document.file == "" {
		return "cluster"
	}
	return fmt.Sprintf("%s:%d", o.document.file, o.document.lineOf(o.pointer))
}

// Position returns the file and the line of a part of the object.
func (o *Object) Position(part jsontext.Pointer) (file string, line int) {
	return o.document.file, o.document.lineOf(o.pointer + part)
}

// ErrorAt returns an error at a part of the object; "" is the whole object.
func (o *Object) ErrorAt(part jsontext.Pointer, text string) error {
	return o.document.ErrorAt(o.pointer+part, text)
}

// FieldPath formats the pointer to a part of the object like [FieldPath]. For a list item the
// path begins with the item.
func (o *Object) FieldPath(part jsontext.Pointer) string { return FieldPath(o.pointer + part) }

// GVK returns the object's group, version and kind.
func (o *Object) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// IsAdmissionReview reports whether the object is a recorded AdmissionReview.
func (o *Object) IsAdmissionReview() bool {
	return o.Kind == "AdmissionReview" && reviewversion.In("admission.k8s.io", o.APIVersion)
}

// Title returns the object's name for display.
func (o *Object) Title() string {
	name := o.Name
	switch {
	case name == "" && o.GenerateName != "":
		name = o.GenerateName + "*"
	case name == "":
		name = "(without a name)"
	}
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	if o.MadeBy != nil {
		name += " of " + o.MadeBy.Title()
	}
	return Printable(o.Kind + " " + name)
}

// Decode decodes the object. The error is an [Error] that names the field.
func (o *Object) Decode(into any) error { return o.DecodePart("", o.Raw, into) }

// DecodeStrict is Decode with the API server's strictness: names are case-sensitive, and
// unknown fields are errors.
func (o *Object) DecodeStrict(into any) error {
	return o.document.Decode(o.pointer, o.Raw, into, json.RejectUnknownMembers(true))
}

// DecodePart decodes a value, and reports errors as if it were at the given part of the object.
func (o *Object) DecodePart(part jsontext.Pointer, raw jsontext.Value, into any) error {
	return o.document.Decode(o.pointer+part, raw, into)
}

// Part returns another object that is at a part of this one or derived from it.
func (o *Object) Part(part jsontext.Pointer, raw jsontext.Value, kind metav1.TypeMeta, meta metav1.ObjectMeta) *Object {
	return &Object{document: o.document, pointer: o.pointer + part, Raw: raw, TypeMeta: kind, ObjectMeta: meta}
}

// FromJSON returns the object, or the items of the list, in an API server's answer.
func FromJSON(raw []byte) ([]*Object, error) {
	return asObjects(&Document{json: true, Raw: raw}, "", raw, metav1.TypeMeta{})
}

// Parse reads the objects in a file and expands lists. It returns the number of documents. The
// error reports all problems: each is an [Error], and several are joined.
func Parse(file string, data []byte) (objects []*Object, documents int, err error) {
	read, err := Documents(file, data)
	errs := []error{err}
	for _, d := range read {
		found, err := asObjects(d, "", d.Raw, metav1.TypeMeta{})
		objects, errs = append(objects, found...), append(errs, err)
	}
	return objects, len(read), errors.Join(errs...)
}

// notObject returns the error for valid YAML or JSON that is not an object.
func (d *Document) notObject(pointer jsontext.Pointer, text string) error {
	return &Error{File: d.file, Line: d.lineOf(pointer), Text: "not a Kubernetes object" + text, NotObject: true}
}

// asObjects returns the object, or the items of the list, at pointer. An object without
// apiVersion and kind inherits them: items of a typed list have none.
func asObjects(d *Document, pointer jsontext.Pointer, raw jsontext.Value, inherited metav1.TypeMeta) ([]*Object, error) {
	var envelope struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Items           jsontext.Value    `json:"items"`
	}
	if kind := raw.Kind(); kind != '{' {
		return nil, d.notObject(pointer, " but "+KindName(kind))
	}
	if err := d.Decode(pointer, raw, &envelope); err != nil {
		return nil, err
	}
	if envelope.APIVersion == "" && envelope.Kind == "" {
		envelope.TypeMeta = inherited
	}
	var missing []string
	if envelope.APIVersion == "" {
		missing = append(missing, "apiVersion")
	}
	if envelope.Kind == "" {
		missing = append(missing, "kind")
	}
	if len(missing) > 0 {
		return nil, d.notObject(pointer, ": it has no "+strings.Join(missing, " and no "))
	}
	if _, err := schema.ParseGroupVersion(envelope.APIVersion); err != nil {
		return nil, d.ErrorAt(pointer+"/apiVersion", "apiVersion: "+err.Error())
	}

	ofKind, isList := strings.CutSuffix(envelope.Kind, "List")
	general := envelope.Kind == "List" && envelope.APIVersion == "v1"
	if !isList || envelope.Items.Kind() != '[' && !general {
		return []*Object{{document: d, pointer: pointer, Raw: raw, TypeMeta: envelope.TypeMeta, ObjectMeta: envelope.Metadata}}, nil
	}
	var items []jsontext.Value
	if len(envelope.Items) > 0 {
		if err := d.Decode(pointer+"/items", envelope.Items, &items); err != nil {
			return nil, err
		}
	}
	inherited = metav1.TypeMeta{APIVersion: envelope.APIVersion, Kind: ofKind}
	if general {
		inherited = metav1.TypeMeta{}
	}
	var objects []*Object
	var errs []error
	for i, item := range items {
		found, err := asObjects(d, pointer+jsontext.Pointer("/items/"+strconv.Itoa(i)), item, inherited)
		objects, errs = append(objects, found...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// Decode decodes the part of a document at pointer. The error is an [Error] that names the
// field.
func (d *Document) Decode(pointer jsontext.Pointer, raw jsontext.Value, into any, options ...json.Options) error {
	err := json.Unmarshal(raw, into, options...)
	if err == nil {
		return nil
	}
	var problem *json.SemanticError
	if !errors.As(err, &problem) {
		return d.ErrorAt(pointer, err.Error())
	}
	at := pointer + problem.JSONPointer
	field := FieldPath(at)
	switch {
	case errors.Is(problem.Err, json.ErrUnknownName):
		return d.ErrorAt(at, fmt.Sprintf("unknown field %q", field))
	case problem.Err != nil:
		return d.ErrorAt(at, field+": "+problem.Err.Error())
	}
	want, got := typeName(problem.GoType), KindName(problem.JSONKind)
	text := fmt.Sprintf("%s: want %s, got %s", field, want, got)
	if want == aString && (got == aNumber || got == aBoolean) {
		text += ": put it in quotes"
	}
	return d.ErrorAt(at, text)
}

const (
	aString   = "a string"
	aNumber   = "a number"
	aBoolean  = "a boolean"
	aSequence = "a sequence"
	aMapping  = "a mapping"
)

// FieldPath formats a pointer like Kubernetes: "spec.env[0].name",
// "metadata.labels[example.com/a]".
func FieldPath(pointer jsontext.Pointer) string {
	if !pointer.IsValid() {
		return string(pointer)
	}
	var path strings.Builder
	for token := range pointer.Tokens() {
		_, notNumber := strconv.Atoi(token)
		switch {
		case notNumber == nil || strings.ContainsAny(token, "./"):
			path.WriteString("[" + token + "]")
		case path.Len() == 0:
			path.WriteString(token)
		default:
			path.WriteString("." + token)
		}
	}
	return path.String()
}

// KindName names the type of a JSON value.
func KindName(kind jsontext.Kind) string {
	switch kind {
	case '"':
		return aString
	case '0':
		return aNumber
	case 't', 'f':
		return aBoolean
	case '[':
		return aSequence
	case '{':
		return aMapping
	default:
		return "nothing"
	}
}

// typeName names the JSON type that a Go type accepts.
func typeName(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return aString
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return aSequence
	case reflect.Map, reflect.Struct:
		return aMapping
	default:
		return aNumber
	}
}
