// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkCheck compares checking a review with a general decoder that makes the same
// checks. Compare the minimum of several runs.
func BenchmarkCheck(b *testing.B) {
	body := recorded(b, "notebook.json")
	b.Run("rawjson", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if err := scan(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("jsontext", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if !jsontext.Value(body).IsValid() {
				b.Fatal("invalid")
			}
		}
	})
}

// BenchmarkReader compares finding the containers of a pod in its review with a general
// decoder that skips the checks already made.
func BenchmarkReader(b *testing.B) {
	body := recorded(b, "notebook.json")
	want, ok := Lookup(body, "request", "object", "spec", "containers")
	if !ok {
		b.Fatal("the recording has no containers")
	}
	b.Run("rawjson", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got, _ := Lookup(body, "request", "object", "spec", "containers"); len(got) != len(want) {
				b.Fatalf("got %s", got)
			}
		}
	})
	b.Run("jsontext", func(b *testing.B) {
		b.ReportAllocs()
		dec := jsontext.NewDecoder(new(bytes.Buffer))
		for b.Loop() {
			dec.Reset(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
			if got := find(b, dec, "request", "object", "spec", "containers"); len(got) != len(want) {
				b.Fatalf("got %s", got)
			}
		}
	})
}

// find is [Lookup] with a general decoder, for object names.
func find(b *testing.B, dec *jsontext.Decoder, names ...string) jsontext.Value {
	if len(names) == 0 {
		value, err := dec.ReadValue()
		if err != nil {
			b.Fatal(err)
		}
		return value
	}
	if _, err := dec.ReadToken(); err != nil {
		b.Fatal(err)
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			b.Fatal(err)
		}
		if string(name[1:len(name)-1]) == names[0] {
			return find(b, dec, names[1:]...)
		}
		if err := dec.SkipValue(); err != nil {
			b.Fatal(err)
		}
	}
	return nil
}

// BenchmarkAppendString covers the strings that patches consist of.
func BenchmarkAppendString(b *testing.B) {
	var buffer [64]byte
	for _, s := range []string{"name", "/spec/containers/0/volumeMounts/-"} {
		b.Run(s, func(b *testing.B) {
			for b.Loop() {
				AppendString(buffer[:0], s)
			}
		})
	}
}
