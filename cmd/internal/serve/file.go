// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// problems collects the problems of a configuration, those in the file with their line.
type problems struct {
	document *manifest.Document // nil without a file
	errs     []error
}

func (p *problems) add(err error) {
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

// field adds a validation error, located by the flag that set the field or by the line.
func (p *problems) field(c *Config, err *field.Error) {
	flag := c.given.Name(err.Field, p.document == nil)
	switch {
	case flag != "":
		p.add(fmt.Errorf("--%s: %w", flag, err))
	case p.document == nil:
		p.add(err)
	default:
		p.add(p.document.ErrorAt(pointerTo(err.Field), err.Error()))
	}
}

// err joins all problems in the order of their lines, those of flags last.
func (p *problems) err() error {
	slices.SortStableFunc(p.errs, func(a, b error) int { return manifest.LineOf(a) - manifest.LineOf(b) })
	return errors.Join(p.errs...)
}

// pointerTo returns the JSON pointer to a field written a.b[0].c or a.b[key.with.dots].
func pointerTo(path string) jsontext.Pointer {
	var pointer jsontext.Pointer
	add := func(token string) { pointer += jsontext.Pointer(jsonpatch.Pointer(token)) }
	for path != "" {
		fields, rest, _ := strings.Cut(path, "[")
		for _, name := range strings.FieldsFunc(fields, func(r rune) bool { return r == '.' }) {
			add(name)
		}
		var key string
		if key, path, _ = strings.Cut(rest, "]"); key != "" {
			add(key)
		}
	}
	return pointer
}

// read decodes a file into a configuration, strictly: an unknown field or a wrong type is a
// problem. It returns an error only if the file is not a configuration at all.
func (p *problems) read(path string, into *Config) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	return p.parse(path, data, into)
}

func (p *problems) parse(path string, data []byte, into *Config) error {
	documents, err := manifest.Documents(path, data)
	if err != nil {
		return err
	}
	if len(documents) != 1 {
		return fmt.Errorf("%s: it holds %d documents; a configuration is one", path, len(documents))
	}
	p.document, into.data = documents[0], data
	raw := p.document.Raw
	if raw.Kind() != '{' {
		return p.document.ErrorAt("", "not a configuration but "+manifest.KindName(raw.Kind()))
	}
	into.APIVersion, into.Kind = "", ""
	p.decode(raw, "", reflect.ValueOf(&into.SallyportConfiguration).Elem())
	if into.APIVersion != configv1alpha1.APIVersion || into.Kind != configv1alpha1.Kind {
		p.add(p.document.ErrorAt("/apiVersion", fmt.Sprintf("want apiVersion: %s and kind: %s", configv1alpha1.APIVersion, configv1alpha1.Kind)))
	}
	return nil
}

// decode decodes an object, list or value, and continues after a problem.
func (p *problems) decode(raw jsontext.Value, at jsontext.Pointer, into reflect.Value) {
	if raw.Kind() == 'n' { // same as absent
		return
	}
	// Types with their own decoder, and optional types, are decoded as one value.
	switch {
	case into.Type() == reflect.TypeFor[time.Duration]():
		var duration metav1.Duration
		if err := p.document.Decode(at, raw, &duration); err != nil {
			p.add(err)
			return
		}
		into.SetInt(int64(duration.Duration))
	case into.Kind() == reflect.Struct && raw.Kind() == '{':
		p.decodeObject(raw, at, into)
	case into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct && raw.Kind() == '[':
		list := reflect.MakeSlice(into.Type(), 0, 0)
		r := rawjson.NewReader(raw)
		r.Array(func(index int) {
			element := reflect.New(into.Type().Elem()).Elem()
			p.decode(r.Value(), at+jsontext.Pointer("/"+strconv.Itoa(index)), element)
			list = reflect.Append(list, element)
		})
		into.Set(list)
	default:
		p.add(p.document.Decode(at, raw, into.Addr().Interface(), json.RejectUnknownMembers(true)))
	}
}

func (p *problems) decodeObject(raw jsontext.Value, at jsontext.Pointer, into reflect.Value) {
	known := tags.Fields(into.Type())
	r := rawjson.NewReader(raw)
	r.Object(func(name []byte) {
		below := at + jsontext.Pointer(jsonpatch.Pointer(string(name)))
		f, ok := known[string(name)]
		if !ok {
			p.add(p.document.ErrorAt(below, fmt.Sprintf("unknown field %q: known are %s",
				manifest.FieldPath(below), strings.Join(slices.Sorted(maps.Keys(known)), ", "))))
			return
		}
		p.decode(r.Value(), below, into.FieldByIndex(f.Index))
	})
}

// readSettings decodes the settings of one entry over their defaults and validates them.
func (p *problems) readSettings(c *Config, index int) {
	entry := &c.Webhooks[index]
	into := c.Settings[entry.Name]
	if into == nil || len(entry.Settings) == 0 {
		return
	}
	path := field.NewPath("webhooks").Index(index).Child("settings")
	at, raw := pointerTo(path.String()), jsontext.Value(entry.Settings)
	if kind := raw.Kind(); kind != '{' && kind != 'n' {
		p.add(p.document.ErrorAt(at, path.String()+": want a mapping, got "+manifest.KindName(kind)))
		return
	}
	p.decode(raw, at, reflect.ValueOf(into).Elem())
	for _, err := range below(path, into.Validate()) {
		p.field(c, err)
	}
}

// below moves validation errors below a field.
func below(path *field.Path, err error) field.ErrorList {
	if err == nil {
		return nil
	}
	// Check joined errors first: errors.As would find only one aggregate among them.
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return allBelow(path, several.Unwrap())
	}
	if several := utilerrors.Aggregate(nil); errors.As(err, &several) {
		return allBelow(path, several.Errors())
	}
	var one *field.Error
	if !errors.As(err, &one) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	moved := *one
	moved.Field = path.String() + "." + one.Field
	return field.ErrorList{&moved}
}

func allBelow(path *field.Path, errs []error) field.ErrorList {
	var out field.ErrorList
	for _, err := range errs {
		out = append(out, below(path, err)...)
	}
	return out
}
