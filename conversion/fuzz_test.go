// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// FuzzConvert converts any object between all versions. All kinds of converters must agree. The
// result must have the desired version and the original metadata, and [Parse] must locate its
// parts correctly.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		alpha("h:1"), alpha("labels:1"), alpha("fails:1"),
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":{"a":"\u003c"},"labels":null,"managedFields":[]},"host":"h","port":"1","weight":3,"free":{"a":[1.5,{}]}}`,
		`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"n\u0061me":"t"},"at":{"host":"h","port":"1"}}`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":null},"weight":1}`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":null,"name":"t","labels":null},"weight":1}`,
		`{"kind":"Thing"}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	ways := converters(f)
	bytewise := APIVersionOnly(thing, all...)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := rawobject.Parse(raw)
		if err != nil {
			return
		}
		var tree map[string]json.RawMessage
		if err := json.Unmarshal(raw, &tree); err != nil {
			t.Fatalf("%s is taken for an object: %v", raw, err)
		}
		if !in.At.Metadata.Empty() && !bytes.Equal(tree["metadata"], in.At.Metadata.Of(raw)) {
			t.Errorf("%s: the metadata are said to be %s", raw, in.At.Metadata.Of(raw))
		}
		for _, version := range all {
			if out, err := bytewise.Append(t.Context(), nil, in, version); err == nil {
				check(t, in, out, version)
			}
			for name, converter := range ways {
				out, err := converter.Append(t.Context(), []byte("before"), in, version)
				if err != nil {
					continue
				}
				out, ok := bytes.CutPrefix(out, []byte("before"))
				if !ok {
					t.Fatalf("%s: what stood before is gone", name)
				}
				check(t, in, out, version)
			}
		}
	})
}

func check(t *testing.T, in *rawobject.Object, out []byte, version string) {
	t.Helper()
	got, err := rawobject.Parse(out)
	if err != nil || !utf8.Valid(out) || !jsontext.Value(out).IsValid() {
		t.Fatalf("%s becomes %s: %v", in.Raw, out, err)
	}
	if got.APIVersion != group+"/"+version && got.APIVersion != in.APIVersion || got.Kind != in.Kind || got.Name != in.Name ||
		got.Namespace != in.Namespace || got.UID != in.UID || got.At.Metadata.Empty() {
		t.Errorf("%s becomes %s", in.Raw, out)
	}
	if !bytes.Equal(got.At.ManagedFields.Of(out), in.At.ManagedFields.Of(in.Raw)) {
		t.Errorf("managed fields: %s becomes %s", in.Raw, out)
	}
}
