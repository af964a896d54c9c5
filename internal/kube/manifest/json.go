// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
)

// readJSON reads d.text as a sequence of JSON values (RFC 8259). Duplicate names and invalid
// UTF-8 are errors.
func (d *Document) readJSON() ([]*Document, error) {
	text := d.content()
	before := d.line - 1 // lines of the file above the unread text
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

// looksLikeJSON reports whether a text that begins with a brace or bracket continues like JSON:
// with a quote, another brace or bracket, or the end. YAML rarely does.
func looksLikeJSON(text []byte) bool {
	next := bytes.TrimLeft(text[1:], " \t\r\n")
	return len(next) == 0 || bytes.IndexByte([]byte(`"{}[]`), next[0]) >= 0
}

// jsonNode returns a JSON value as a YAML node, which has the lines of its parts. It returns
// nil if text is not exactly one JSON value.
func jsonNode(text []byte) *yamlv3.Node {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	line, looked := 1, 0
	var read func() *yamlv3.Node
	read = func() *yamlv3.Node {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil
		}
		end := int(decoder.InputOffset()) // only white space contains newlines
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
