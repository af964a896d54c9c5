// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Redacted replaces a value that is not recorded.
const Redacted = "REDACTED"

// RedactedData is [Redacted] in base64, for the data of a Secret.
const RedactedData = "UkVEQUNURUQ="

// Redaction lists the values that are recorded. All other values of environment variables and
// annotations, the data of Secrets, the headers of probes and hooks, and the settings of CSI and
// flexVolume drivers are replaced, wherever an object has them. The structure is preserved.
type Redaction struct {
	// Annotations and Variables are names, or prefixes that end in "*".
	Annotations, Variables []string
	// Mask returns the replacement of a value; nil for [Redacted].
	Mask func(value string) string
}

func (r Redaction) mask(value any) string {
	text, isText := value.(string)
	if r.Mask == nil || !isText {
		return Redacted
	}
	return r.Mask(text)
}

func allowed(names []string, name string) bool {
	return slices.ContainsFunc(names, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return pattern == name || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// Object redacts an object in JSON. It preserves the text of numbers.
func (r Redaction) Object(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	value, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	r.redact(value)
	return json.Marshal(value)
}

// Patch redacts a JSON Patch for an object of a kind, each value as if it were at its path.
func (r Redaction) Patch(patch []byte, kind string) ([]byte, error) {
	if len(patch) == 0 {
		return nil, nil
	}
	var operations []map[string]any
	decoder := json.NewDecoder(bytes.NewReader(patch))
	decoder.UseNumber()
	if err := decoder.Decode(&operations); err != nil {
		return nil, err
	}
	for _, operation := range operations {
		path, _ := operation["path"].(string)
		if value, ok := operation["value"]; ok {
			operation["value"] = r.at(jsontext.Pointer(path), kind, value)
		}
	}
	return json.Marshal(operations)
}

// at redacts a value as if it were at a path in an object of a kind.
func (r Redaction) at(path jsontext.Pointer, kind string, value any) any {
	tokens := slices.Collect(path.Tokens())
	// Wrap the value from the inside out in what its path leads through.
	whole := value
	for i := range slices.Backward(tokens) {
		if token := tokens[i]; isIndex(tokens, i) {
			whole = []any{whole}
		} else {
			whole = map[string]any{token: whole}
		}
	}
	if object, ok := whole.(map[string]any); ok && kind != "" && len(tokens) > 0 {
		object["kind"] = kind
	}
	r.redact(whole)
	for i, token := range tokens {
		if isIndex(tokens, i) {
			whole = whole.([]any)[0]
		} else {
			whole = whole.(map[string]any)[token]
		}
	}
	return whole
}

// isIndex reports whether a token is a list index. In a map, a number is a key.
func isIndex(tokens []string, i int) bool {
	if i == 0 || slices.Contains([]string{"annotations", "data", "stringData", "volumeAttributes", "options"}, tokens[i-1]) {
		return false
	}
	token := tokens[i]
	return token == "-" || token != "" && strings.Trim(token, "0123456789") == ""
}

// Decode decodes JSON and keeps numbers as they are written.
func Decode(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// redact changes a value in place.
func (r Redaction) redact(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			r.redact(element)
		}
	case map[string]any:
		if value["kind"] == "Secret" {
			replaceAll(value["data"], nil, func(any) string { return RedactedData })
			replaceAll(value["stringData"], nil, r.mask)
		}
		for name, member := range value {
			switch name {
			case "annotations":
				replaceAll(member, r.Annotations, r.mask)
			case "env":
				r.values(member, r.Variables)
			case "httpHeaders":
				r.values(member, nil)
			case "volumeAttributes":
				replaceAll(member, nil, r.mask)
			case "flexVolume":
				if volume, ok := member.(map[string]any); ok {
					replaceAll(volume["options"], nil, r.mask)
				}
			}
			r.redact(member)
		}
	}
}

// replaceAll replaces the values of a map of strings.
func replaceAll(of any, except []string, mask func(any) string) {
	values, _ := of.(map[string]any)
	for name, value := range values {
		if !allowed(except, name) {
			values[name] = mask(value)
		}
	}
}

// values replaces the values of a list of names and values, except those of some names.
func (r Redaction) values(list any, except []string) {
	elements, _ := list.([]any)
	for _, element := range elements {
		fields, _ := element.(map[string]any)
		name, _ := fields["name"].(string)
		if value, there := fields["value"]; there && (name == "" || !allowed(except, name)) {
			fields["value"] = r.mask(value)
		}
	}
}
