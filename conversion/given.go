// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// given holds the original labels and annotations; nil where there are none.
type given struct{ labels, annotations []pair }

type pair struct{ key, value string }

// readGiven reads labels and annotations. plain is false if they are not maps of strings.
func readGiven(in *rawobject.Object) (original given, plain bool) {
	for _, part := range []struct {
		at rawobject.Span
		to *[]pair
	}{{in.At.Labels, &original.labels}, {in.At.Annotations, &original.annotations}} {
		if part.at.Empty() {
			continue
		}
		if *part.to, plain = readPairs(part.at.Of(in.Raw)); !plain {
			return given{}, false
		}
	}
	return original, true
}

// readPairs reads an object of strings from valid JSON.
func readPairs(object []byte) (pairs []pair, plain bool) {
	pairs = make([]pair, 0, 4)
	r := rawjson.NewReader(object)
	strings := true
	plain = r.Object(func(name []byte) {
		key := string(name)
		value, isString := r.String()
		strings = strings && isString
		pairs = append(pairs, pair{key, string(value)})
	})
	return pairs, plain && strings
}

func mapOf(pairs []pair) map[string]string {
	m := make(map[string]string, len(pairs)+1) // room for a stash
	for _, p := range pairs {
		m[p.key] = p.value
	}
	return m
}

// unchanged reports whether a converter left a map unchanged.
func unchanged(original []pair, now map[string]string) bool {
	if len(original) != len(now) {
		return false
	}
	for _, p := range original {
		if value, ok := now[p.key]; !ok || value != p.value {
			return false
		}
	}
	return true
}
