// SPDX-License-Identifier: Apache-2.0

// Package rawobject is an object of the API as its bytes, and where in them the parts stand that
// conversion has to keep or to change.
package rawobject

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is an object to be converted: its bytes, and where in them the parts stand that
// every object has. Package wire makes one of each object of a review; [Parse] makes one of bytes.
type Object struct {
	// Raw is a JSON object without duplicate names and invalid UTF-8. Nobody changes it.
	Raw []byte

	APIVersion, Kind     string
	Namespace, Name, UID string

	// Where the values stand in Raw.
	At Parts
	// Nulls are where labels and annotations are null, which have to go where others come.
	Nulls struct{ Labels, Annotations Span }
}

// Parts are where values stand in the bytes of an object. A part that the object does
// not have, or which is null, is empty.
type Parts struct {
	APIVersion, Metadata, Labels, Annotations, ManagedFields Span
}

// Span is a part of a slice: its first byte, and the one behind its last.
type Span struct{ Start, End int }

// Empty tells whether there is no such part.
func (s Span) Empty() bool { return s.End == 0 }

// Of returns the bytes of the part.
func (s Span) Of(raw []byte) []byte { return raw[s.Start:s.End:s.End] }

// Parse checks the bytes of an object and finds its parts. The error repeats nothing of
// the content.
func Parse(raw []byte) (*Object, error) {
	p := parser{dec: jsontext.NewDecoder(bytes.NewBuffer(raw)), in: &Object{Raw: raw}}
	_, err := p.object(p.top)
	if err == nil && p.dec.InputOffset() < int64(len(raw)) {
		if len(bytes.TrimSpace(raw[p.dec.InputOffset():])) > 0 {
			err = errors.New("there is more behind the end of the object")
		}
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("the object is not valid JSON at byte %d", syntax.ByteOffset)
	case err != nil:
		return nil, err
	}
	return p.in, nil
}

type parser struct {
	dec *jsontext.Decoder
	in  *Object
}

// object reads an object member by member, whose values member reads, and tells where
// it stands.
func (p *parser) object(member func(name string) error) (at Span, err error) {
	if p.dec.PeekKind() != '{' {
		if _, err := p.dec.ReadValue(); err != nil {
			return at, err
		}
		return at, errors.New("the object, or its metadata, is not a JSON object")
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return at, err
	}
	at.Start = int(p.dec.InputOffset()) - 1
	for p.dec.PeekKind() == '"' {
		name, err := p.dec.ReadToken()
		if err != nil {
			return at, err
		}
		if err := member(name.String()); err != nil {
			return at, err
		}
	}
	_, err = p.dec.ReadToken()
	at.End = int(p.dec.InputOffset())
	return at, err
}

func (p *parser) top(name string) error {
	switch name {
	case "apiVersion":
		return p.text(name, &p.in.APIVersion, &p.in.At.APIVersion)
	case "kind":
		return p.text(name, &p.in.Kind, nil)
	case "metadata":
		if p.dec.PeekKind() == 'n' {
			return p.span(nil)
		}
		at, err := p.object(p.metadata)
		p.in.At.Metadata = at
		return err
	}
	return p.span(nil)
}

func (p *parser) metadata(name string) error {
	switch name {
	case "name":
		return p.text("metadata.name", &p.in.Name, nil)
	case "namespace":
		return p.text("metadata.namespace", &p.in.Namespace, nil)
	case "uid":
		return p.text("metadata.uid", &p.in.UID, nil)
	case "labels":
		return p.spanOrNull(&p.in.At.Labels, &p.in.Nulls.Labels)
	case "annotations":
		return p.spanOrNull(&p.in.At.Annotations, &p.in.Nulls.Annotations)
	case "managedFields":
		return p.span(&p.in.At.ManagedFields)
	}
	return p.span(nil)
}

// span reads a value and tells where it stands, unless it is null.
func (p *parser) span(to *Span) error { return p.spanOrNull(to, nil) }

// spanOrNull reads a value and tells where it stands, in the one place or the other. Nil
// is told nothing.
func (p *parser) spanOrNull(to, null *Span) error {
	value, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == 'n' {
		to = null
	}
	if to != nil {
		end := int(p.dec.InputOffset())
		*to = Span{end - len(value), end}
	}
	return nil
}

func (p *parser) text(path string, to *string, at *Span) error {
	value, err := p.dec.ReadValue()
	if err != nil || value.Kind() == 'n' {
		return err
	}
	if value.Kind() != '"' {
		return fmt.Errorf("%s is not a string", path)
	}
	if at != nil {
		end := int(p.dec.InputOffset())
		*at = Span{end - len(value), end}
	}
	text, err := jsontext.AppendUnquote(nil, value)
	*to = string(text)
	return err
}

// SplitAPIVersion returns the group, empty for that of Kubernetes' core, and the version
// of an apiVersion.
func SplitAPIVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}
