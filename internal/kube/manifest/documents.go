// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from files, folders and stdin. It reads YAML and
// JSON documents and expands lists. Every error names its file and line.
package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
)

// A Document is one part of a file: a YAML document or a JSON value.
type Document struct {
	file string
	line int // of the file, where the content begins

	// Raw is the document as JSON.
	Raw jsontext.Value

	text   []byte
	before int // lines of the file above text
	json   bool
	root   *yamlv3.Node // of text, parsed on demand
	last   int          // line of the file, counted on demand; see lastLine
}

// An Error is a problem in a file. Its text is one line.
type Error struct {
	File string
	Line int
	Text string
	// NotObject is set for valid YAML or JSON that is not a Kubernetes object.
	NotObject bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, strings.ReplaceAll(Printable(e.Text), "\n", `\n`))
}

// SplitErrors returns the errors joined in err.
func SplitErrors(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, SplitErrors(e)...)
	}
	return out
}

// LineOf returns the line that an error names. Errors without a line sort last.
func LineOf(err error) int {
	var located *Error
	if errors.As(err, &located) {
		return located.Line
	}
	return math.MaxInt
}

// Documents reads a stream of YAML documents and JSON values. It skips empty and null
// documents. Each error is an [Error], or several joined.
func Documents(file string, data []byte) ([]*Document, error) {
	var documents []*Document
	var errs []error
	for _, part := range splitDocuments(file, decodeText(data)) {
		read, err := part.read()
		errs = append(errs, err)
		for _, d := range read {
			if d.Raw.Kind() != 'n' {
				documents = append(documents, d)
			}
		}
	}
	return documents, errors.Join(errs...)
}

// read reads a part of a YAML stream. The part may contain several JSON values, which need no
// separator.
func (d *Document) read() ([]*Document, error) {
	content := d.content()
	if content[0] != '{' && content[0] != '[' {
		return d.readYAML()
	}
	values, err := d.readJSON()
	if err == nil || filepath.Ext(d.file) == ".json" {
		return values, err
	}
	// Braces are YAML too.
	values, errYAML := d.readYAML()
	if errYAML != nil && looksLikeJSON(content) {
		return nil, err
	}
	return values, errYAML
}

// content returns the text from the first line with content.
func (d *Document) content() []byte {
	text := d.text
	for range d.line - d.before - 1 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return bytes.TrimLeft(text, " \t")
}

// splitDocuments splits a YAML stream at its document markers. It drops parts with only
// comments, and comments and directives above a marker: %YAML 1.2 would stop the parser.
func splitDocuments(file string, data []byte) []*Document {
	var documents []*Document
	current := &Document{file: file}
	next := func(before int) {
		if current.line > 0 {
			documents = append(documents, current)
		}
		current = &Document{file: file, before: before}
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		content := line
		switch {
		case isMarker(line, "---"):
			next(number - 1)
			content = line[3:]
		case isMarker(line, "..."):
			next(number)
			continue
		}
		content = bytes.TrimSpace(content)
		says := len(content) > 0 && content[0] != '#' && (current.line > 0 || line[0] != '%')
		if says && current.line == 0 {
			current.line = number
		}
		current.text = append(current.text, line...)
	}
	next(number)
	return documents
}

// isMarker reports whether the line begins with a document marker, followed by white space or
// the end of the line (YAML 1.1, section 4.3.3).
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// decodeText removes a byte order mark and converts UTF-16 to UTF-8. PowerShell writes UTF-16
// when it redirects output to a file.
func decodeText(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return data
	}
	units := make([]uint16, len(data)/2-1)
	for i := range units {
		units[i] = order.Uint16(data[2*i+2:])
	}
	return []byte(string(utf16.Decode(units)))
}

// ErrorAt returns an error at the position of the pointer.
func (d *Document) ErrorAt(pointer jsontext.Pointer, text string) error {
	return &Error{File: d.file, Line: d.lineOf(pointer), Text: text}
}

// Position returns the file and the line of the pointer's target.
func (d *Document) Position(pointer jsontext.Pointer) (file string, line int) {
	return d.file, d.lineOf(pointer)
}

// lineOf returns the line of the file where the pointer's target begins. If there is no target,
// it returns the line of the closest ancestor.
func (d *Document) lineOf(pointer jsontext.Pointer) int {
	if pointer == "" || !pointer.IsValid() || d.node() == nil {
		return d.line
	}
	line, _ := lineOf(d.node(), pointer)
	return max(d.line, min(d.before+line, d.lastLine()))
}

// lastLine returns the document's last line in the file. It counts lines as editors do; YAML
// knows more line breaks.
func (d *Document) lastLine() int {
	if d.last == 0 {
		d.last = d.before + bytes.Count(bytes.TrimRight(d.text, "\r\n"), []byte("\n")) + 1
	}
	return d.last
}

func (d *Document) node() *yamlv3.Node {
	switch {
	case d.root != nil:
	case d.json:
		d.root = jsonNode(d.text)
	default:
		d.root, _ = yamlNode(d.text)
	}
	return d.root
}
