// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
)

// readJSON reads d.text as JSON values (RFC 8259) that follow each other. A name
// that an object has twice is an error, as is text that is not UTF-8.
func (d *Document) readJSON() ([]*Document, error) {
	text := d.content()
	before := d.line - 1 // lines of the file above what was not looked at yet
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	var documents []*Document
	looked := 0
	for {
		raw, err := decoder.ReadValue()
		if errors.Is(err, io.EOF) && decoder.StackDepth() == 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			return documents, nil
		}
		if err != nil {
			var syntax *jsontext.SyntacticError
			reason := err.Error()
			if errors.As(err, &syntax) {
				before += bytes.Count(text[looked:max(looked, min(int(syntax.ByteOffset), len(text)))], []byte("\n"))
				reason = syntax.Err.Error()
			}
			if errors.Is(err, jsontext.ErrDuplicateName) && syntax != nil {
				reason = "duplicate key " + FieldPath(syntax.JSONPointer)
			}
			return nil, &Error{File: d.file, Line: before + 1, Text: "not JSON: " + reason}
		}
		begin := int(decoder.InputOffset()) - len(raw)
		before += bytes.Count(text[looked:begin], []byte("\n"))
		raw = raw.Clone()
		documents = append(documents, &Document{file: d.file, line: before + 1, Raw: raw, text: raw, before: before, json: true})
		before += bytes.Count(raw, []byte("\n"))
		looked = begin + len(raw)
	}
}

// looksLikeJSON tells whether a text that begins with a brace or bracket goes on as
// JSON does: with a quote, another one, or nothing. YAML mostly does not.
func looksLikeJSON(text []byte) bool {
	next := bytes.TrimLeft(text[1:], " \t\r\n")
	return len(next) == 0 || bytes.IndexByte([]byte(`"{}[]`), next[0]) >= 0
}

// jsonNode gives a JSON value the form of a YAML node, for the lines of its parts.
// It is nil if text is not one JSON value.
func jsonNode(text []byte) *yamlv3.Node {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	line, looked := 1, 0
	var read func() *yamlv3.Node
	read = func() *yamlv3.Node {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil
		}
		end := int(decoder.InputOffset()) // no token but white space spans lines
		line += bytes.Count(text[looked:end], []byte("\n"))
		looked = end
		node := &yamlv3.Node{Kind: yamlv3.ScalarNode, Line: line}
		switch token.Kind() {
		case '"':
			node.Value = token.String()
		case '{', '[':
			node.Kind = yamlv3.MappingNode
			if token.Kind() == '[' {
				node.Kind = yamlv3.SequenceNode
			}
			for decoder.PeekKind() != '}' && decoder.PeekKind() != ']' {
				part := read()
				if part == nil {
					return nil
				}
				node.Content = append(node.Content, part)
			}
			if _, err := decoder.ReadToken(); err != nil {
				return nil
			}
		}
		return node
	}
	return read()
}
