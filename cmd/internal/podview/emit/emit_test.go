// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

func TestOriginsAreRecordedOnDemand(t *testing.T) {
	for _, explain := range []bool{false, true} {
		p := New(explain, 4)
		p.Add("/metadata/labels/a", []byte(`"1"`))
		p.Origin(Source("x"), "", "metadata", "labels", "a/b")
		p.Replace("/spec/hostname", []byte(`"h"`))
		p.OriginAt(Source("y"), "/spec/volumes", 3)
		b := jsonpatch.NewBuilderAt("/spec/tolerations", []byte(`[1]`))
		b.Append(nil, []byte(`2`))
		p.Edit(b)
		want := []admission.Origin{{Path: "/metadata/labels/a~1b", Source: "x"}, {Path: "/spec/volumes/3", Source: "y"}}
		if !explain {
			want = nil
		}
		resp := p.Response()
		if diff := cmp.Diff(want, resp.Origins); diff != "" || p.Explains() != explain {
			t.Error(diff)
		}
		const patch = `[{"op":"add","path":"/metadata/labels/a","value":"1"},{"op":"replace","path":"/spec/hostname","value":"h"},{"op":"add","path":"/spec/tolerations/-","value":2}]`
		if got := string(resp.Patch.AppendJSON(nil)); got != patch || p.Err != nil {
			t.Errorf("got %s, %v", got, p.Err)
		}
		b = jsonpatch.NewBuilderAt("/spec/tolerations", []byte(`"no list"`))
		b.Append(nil, []byte(`2`))
		if p.Edit(b); p.Err == nil {
			t.Error("something that is not a list is extended")
		}
		before := len(p.Operations)
		b = jsonpatch.NewBuilderAt("/spec/volumes", []byte(`[]`))
		b.Append(nil, []byte(`2`))
		if p.Edit(b); p.Err == nil || len(p.Operations) != before {
			t.Error("the first problem is forgotten")
		}
	}
}
