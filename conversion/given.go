// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// given are labels and annotations as they came; nil where there are none.
type given struct{ labels, annotations []pair }

type pair struct{ key, value string }

// readGiven reads labels and annotations. It is false if they are not what they must
// be, maps of strings.
func readGiven(in *Object) (came given, plain bool) {
	for _, part := range []struct {
		at Span
		to *[]pair
	}{{in.At.Labels, &came.labels}, {in.At.Annotations, &came.annotations}} {
		if part.at.Empty() {
			continue
		}
		if *part.to, plain = readPairs(part.at.Of(in.Raw)); !plain {
			return given{}, false
		}
	}
	return came, true
}

// readPairs reads an object of strings, which is valid JSON.
func readPairs(object []byte) (pairs []pair, plain bool) {
	text := string(object) // of which the strings are parts
	pairs = make([]pair, 0, 4)
	i := space(object, 0)
	if i >= len(object) || object[i] != '{' {
		return nil, false
	}
	i = space(object, i+1)
	for i < len(object) && object[i] != '}' {
		var p pair
		p.key, i = readString(object, text, i)
		i = space(object, i)   // to the colon
		i = space(object, i+1) // to the value
		if i >= len(object) || object[i] != '"' {
			return nil, false
		}
		p.value, i = readString(object, text, i)
		pairs = append(pairs, p)
		if i = space(object, i); i < len(object) && object[i] == ',' {
			i = space(object, i+1)
		}
	}
	return pairs, true
}

// readString reads the string that begins at i.
func readString(data []byte, text string, i int) (s string, behind int) {
	behind = stringEnd(data, i)
	if bytes.IndexByte(data[i:behind], '\\') < 0 {
		return text[i+1 : behind-1], behind
	}
	unquoted, _ := jsontext.AppendUnquote(make([]byte, 0, behind-i), data[i:behind]) // it is valid
	return string(unquoted), behind
}

func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

func mapOf(pairs []pair) map[string]string {
	m := make(map[string]string, len(pairs)+1) // a stash may come
	for _, p := range pairs {
		m[p.key] = p.value
	}
	return m
}

// unchanged compares what came with what a converter made of it.
func unchanged(came []pair, now map[string]string) bool {
	if len(came) != len(now) {
		return false
	}
	for _, p := range came {
		if value, ok := now[p.key]; !ok || value != p.value {
			return false
		}
	}
	return true
}
