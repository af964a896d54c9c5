// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// readYAML reads d.text as one YAML document, with kubectl's rules. It reports two errors that
// kubectl ignores: duplicate names, and text after the end of the document. The parser ends the
// document at a line with less indentation than the first.
func (d *Document) readYAML() ([]*Document, error) {
	raw, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return nil, d.yamlErrors(err)
	}
	if _, err := yamlNode(d.text); err != nil {
		return nil, d.yamlErrors(err)
	}
	d.Raw = raw
	return []*Document{d}, nil
}

// errBehind is the error for text after the end of a document.
var errBehind = errors.New("unexpected content: check the indentation, or put --- between two documents")

// yamlNode parses a text that must be a single document.
func yamlNode(text []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var root, behind yamlv3.Node
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	switch err := decoder.Decode(&behind); {
	case err == nil:
		return nil, fmt.Errorf("yaml: line %d: %w", behind.Line, errBehind)
	case !errors.Is(err, io.EOF):
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && outsideDocument(m[2]) {
			return nil, fmt.Errorf("yaml: line %d: %w", yamlErrorLine(m), errBehind)
		}
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, errors.New("yaml: no document")
	}
	return root.Content[0], nil
}

// yamlLine matches one problem in an error of the YAML libraries.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?\s*line (\d+): (.*)$`)

// yamlErrorLine returns the line of an error. The libraries count from zero in errors of the
// parser, and from one in errors of the scanner. Only the text tells them apart.
func yamlErrorLine(m []string) int {
	line, err := strconv.Atoi(m[1])
	if err == nil && parserText.MatchString(m[2]) {
		line++
	}
	return line
}

var parserText = regexp.MustCompile(`^did not find expected (?:<|'|key|node content)`)

func outsideDocument(text string) bool {
	return text == "did not find expected <document start>"
}

// yamlErrors translates the lines in errors of the YAML libraries from d.text to the file.
func (d *Document) yamlErrors(err error) error {
	var errs []error
	for text := range strings.SplitSeq(err.Error(), "\n") {
		text = strings.TrimPrefix(text, "error converting YAML to JSON: ")
		if text == "yaml: unmarshal errors:" {
			continue // the header; one line for each problem follows
		}
		line := d.line
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			// A missing end is reported after the last line.
			line, text = min(d.before+yamlErrorLine(m), d.lastLine()), m[2]
		}
		text = "not YAML: " + strings.TrimPrefix(text, "yaml: ")
		if d.indentedByTab(line) {
			text += ": the line begins with a tab, indent it by spaces"
		}
		errs = append(errs, &Error{File: d.file, Line: line, Text: text})
	}
	return errors.Join(errs...)
}

// indentedByTab reports whether the indentation of a line of the file contains a tab. The
// parser's error does not say so.
func (d *Document) indentedByTab(line int) bool {
	text := d.text
	for range line - d.before - 1 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return bytes.HasPrefix(bytes.TrimLeft(text, " "), []byte("\t"))
}

// YAML returns JSON as YAML. The parser of YAML does not know pairs of surrogates, with which JSON
// may escape a character, so it gets the characters themselves.
func YAML(value jsontext.Value) ([]byte, error) {
	plain := value.Clone()
	if err := plain.Format(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.EscapeForJS(true)); err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(plain)
}

// Lines returns the lines of a YAML document at which the pointers' targets begin. It omits
// pointers without a target.
func Lines(document []byte, pointers []jsontext.Pointer) (map[jsontext.Pointer]int, error) {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil || len(root.Content) == 0 {
		return nil, err
	}
	lines := map[jsontext.Pointer]int{}
	for _, pointer := range pointers {
		if !pointer.IsValid() {
			return nil, fmt.Errorf("%q is not a JSON pointer", pointer)
		}
		if line, ok := lineOf(root.Content[0], pointer); ok {
			lines[pointer] = line
		}
	}
	return lines, nil
}

// lineOf returns the line of the pointer's target. If there is none, it returns the line of the
// closest ancestor, and ok is false.
func lineOf(node *yamlv3.Node, pointer jsontext.Pointer) (line int, ok bool) {
	line = node.Line
	for token := range pointer.Tokens() {
		for node.Kind == yamlv3.AliasNode {
			node = node.Alias
		}
		var next *yamlv3.Node
		switch node.Kind {
		case yamlv3.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == token {
					line, next = node.Content[i].Line, node.Content[i+1]
					break
				}
			}
		case yamlv3.SequenceNode:
			if index, err := strconv.Atoi(token); err == nil && index >= 0 && index < len(node.Content) {
				next = node.Content[index]
				line = next.Line
			}
		}
		if next == nil {
			return line, false
		}
		node = next
	}
	return line, true
}
