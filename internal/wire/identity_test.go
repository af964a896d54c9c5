// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

func TestNameAndNamespaceStay(t *testing.T) {
	const named = `{"metadata":{"name":"a","namespace":"team","labels":{}}}`
	op := func(op, path, value string) jsonpatch.Patch {
		return jsonpatch.Patch{{Op: op, Path: path, Value: []byte(value)}}
	}
	for _, tc := range []struct {
		name   string
		object string
		patch  jsonpatch.Patch
		ok     bool
	}{
		{"a label", named, op("add", "/metadata/labels/name", `"b"`), true},
		{"another name", named, op("replace", "/metadata/name", `"b"`), false},
		{"another namespace", named, op("add", "/metadata/namespace", `"b"`), false},
		{"the same name", named, op("replace", "/metadata/name", `"a"`), true},
		{"the same namespace", named, op("replace", "/metadata/namespace", `"team"`), true},
		{"no name", named, jsonpatch.Patch{{Op: "remove", Path: "/metadata/name"}}, false},
		{"no namespace", named, jsonpatch.Patch{{Op: "remove", Path: "/metadata/namespace"}}, false},
		{"no metadata", named, jsonpatch.Patch{{Op: "remove", Path: "/metadata"}}, false},
		{"other metadata", named, op("replace", "/metadata", `{"name":"b","namespace":"team"}`), false},
		{"other metadata of the same name", named, op("replace", "/metadata", `{"name":"a","namespace":"team","labels":{"x":"y"}}`), true},
		{"another object", named, op("replace", "", `{"metadata":{"name":"a","namespace":"b"}}`), false},
		{"another object of the same name", named, op("add", "", `{"metadata":{"name":"a","namespace":"team"}}`), true},
		{"a name that moves away", named, jsonpatch.Patch{{Op: "move", From: "/metadata/name", Path: "/metadata/labels/name"}}, false},
		{"a name that moves here", named, jsonpatch.Patch{{Op: "move", From: "/metadata/labels/a", Path: "/metadata/name"}}, false},
		{"a name that is copied here", named, jsonpatch.Patch{{Op: "copy", From: "/metadata/labels/a", Path: "/metadata/name"}}, false},
		{"a name that is tested", named, op("test", "/metadata/name", `"b"`), true},
		{"a name for an object that has none", `{"metadata":{"generateName":"a-"}}`, op("add", "/metadata/name", `"a-1"`), true},
		{"the namespace of the request", `{"metadata":{"name":"a"}}`, op("add", "/metadata/namespace", `"team"`), true},
		{"another namespace than the request's", `{"metadata":{"name":"a"}}`, op("add", "/metadata/namespace", `"b"`), false},
		{"the second operation", named, append(op("add", "/spec", `{}`), op("replace", "/metadata/name", `"b"`)...), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := &admissionv1.AdmissionRequest{Namespace: "team"}
			req.Object.Raw = []byte(tc.object)
			if err := checkIdentity(req, tc.patch); (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
