// SPDX-License-Identifier: Apache-2.0

package main

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

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// An object is a Kubernetes object from a file.
type object struct {
	document *document
	pointer  jsontext.Pointer // where it stands in its document: elsewhere than at the top in a list
	raw      jsontext.Value
	// maker is set for a pod that a workload would make.
	maker *maker
	metav1.TypeMeta
	metav1.ObjectMeta
}

// at is where the object comes from, for messages: "<file>:<line>", or "cluster".
func (o *object) at() string {
	if o.document.file == "" {
		return "cluster"
	}
	return fmt.Sprintf("%s:%d", o.document.file, o.document.lineOf(o.pointer))
}

func (o *object) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// title names the object, for people.
func (o *object) title() string {
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
	if o.maker != nil {
		name += " of " + o.maker.title()
	}
	return printable(o.Kind + " " + name)
}

// decode reads the object into a type as strictly as the API server can: names are
// case-sensitive, and unknown ones are refused. The error is a [fileError] that
// names the field.
func (o *object) decode(into any) error {
	return decode(o.document, o.pointer, o.raw, into, json.RejectUnknownMembers(true))
}

// parseObjects reads the objects of a file, lists unfolded, and tells how many
// documents that were. It goes on after a mistake: each is a [fileError], and
// several are joined.
func parseObjects(file string, data []byte) (objects []*object, documents int, err error) {
	read, err := readDocuments(file, data)
	errs := []error{err}
	for _, d := range read {
		found, err := asObjects(d, "", d.raw, metav1.TypeMeta{})
		objects, errs = append(objects, found...), append(errs, err)
	}
	return objects, len(read), errors.Join(errs...)
}

// noObject begins the message about a document that is good YAML or JSON, and something
// else than an object.
const noObject = "not a Kubernetes object"

// asObjects reads the object, or the objects of the list, that stands at pointer.
// What the object does not say about its type is inherited: in a list of one type
// it says nothing.
func asObjects(d *document, pointer jsontext.Pointer, raw jsontext.Value, inherited metav1.TypeMeta) ([]*object, error) {
	var envelope struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Items           jsontext.Value    `json:"items"`
	}
	if kind := raw.Kind(); kind != '{' {
		return nil, d.errorAt(pointer, noObject+" but "+kindName(kind))
	}
	if err := decode(d, pointer, raw, &envelope); err != nil {
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
		return nil, d.errorAt(pointer, noObject+": it has no "+strings.Join(missing, " and no "))
	}
	if _, err := schema.ParseGroupVersion(envelope.APIVersion); err != nil {
		return nil, d.errorAt(pointer+"/apiVersion", "apiVersion: "+err.Error())
	}

	ofKind, isList := strings.CutSuffix(envelope.Kind, "List")
	general := envelope.Kind == "List" && envelope.APIVersion == "v1"
	if !isList || envelope.Items.Kind() != '[' && !general {
		return []*object{{document: d, pointer: pointer, raw: raw, TypeMeta: envelope.TypeMeta, ObjectMeta: envelope.Metadata}}, nil
	}
	var items []jsontext.Value
	if len(envelope.Items) > 0 {
		if err := decode(d, pointer+"/items", envelope.Items, &items); err != nil {
			return nil, err
		}
	}
	inherited = metav1.TypeMeta{APIVersion: envelope.APIVersion, Kind: ofKind}
	if general {
		inherited = metav1.TypeMeta{}
	}
	var objects []*object
	var errs []error
	for i, item := range items {
		found, err := asObjects(d, pointer+jsontext.Pointer("/items/"+strconv.Itoa(i)), item, inherited)
		objects, errs = append(objects, found...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// decode reads the part of a document that stands at pointer. The error is a
// [fileError] that names the field.
func decode(d *document, pointer jsontext.Pointer, raw jsontext.Value, into any, options ...json.Options) error {
	err := json.Unmarshal(raw, into, options...)
	if err == nil {
		return nil
	}
	var mistake *json.SemanticError
	if !errors.As(err, &mistake) {
		return d.errorAt(pointer, err.Error())
	}
	at := pointer + mistake.JSONPointer
	field := fieldPath(at)
	switch {
	case errors.Is(mistake.Err, json.ErrUnknownName):
		return d.errorAt(at, fmt.Sprintf("unknown field %q", field))
	case mistake.Err != nil:
		return d.errorAt(at, field+": "+mistake.Err.Error())
	}
	want, got := typeName(mistake.GoType), kindName(mistake.JSONKind)
	text := fmt.Sprintf("%s: want %s, got %s", field, want, got)
	if want == aString && (got == aNumber || got == aBoolean) {
		text += ": put it in quotes"
	}
	return d.errorAt(at, text)
}

const (
	aString   = "a string"
	aNumber   = "a number"
	aBoolean  = "a boolean"
	aSequence = "a sequence"
	aMapping  = "a mapping"
)

// fieldPath writes a pointer as Kubernetes writes fields:
// "spec.env[0].name", "metadata.labels[example.com/a]".
func fieldPath(pointer jsontext.Pointer) string {
	tokens, err := jsonpatch.SplitPointer(string(pointer))
	if err != nil {
		return string(pointer)
	}
	var path strings.Builder
	for _, token := range tokens {
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

// kindName says what a JSON value is, in words.
func kindName(kind jsontext.Kind) string {
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

// typeName says what value a Go type takes, in words.
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
