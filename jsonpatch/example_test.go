// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

func ExampleBuilder() {
	pod := []byte(`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"main","env":[{"name":"HOME","value":"/"}]}]}}`)

	b := jsonpatch.NewBuilder(pod)
	b.Set(json.RawMessage(`"true"`), "metadata", "annotations", "example.com/injected")
	b.Append([]string{"spec", "containers", "0", "env"}, json.RawMessage(`{"name":"PROXY","value":"http://proxy"}`))
	b.Remove("spec", "nodeName") // does not exist
	patch, err := b.Patch()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range patch {
		fmt.Println(op.Op, op.Path, string(op.Value))
	}
	// Output:
	// add /metadata/annotations {"example.com/injected":"true"}
	// add /spec/containers/0/env/- {"name":"PROXY","value":"http://proxy"}
}

func ExampleDiffRaw() {
	// The document has a member that is unknown to this version of the type.
	raw := []byte(`{"spec":{"initContainers":[{"name":"proxy","image":"proxy:1","fromTheFuture":true}],"containers":[]}}`)
	var before corev1.Pod
	if err := json.Unmarshal(raw, &before); err != nil {
		fmt.Println(err)
		return
	}

	after := before.DeepCopy()
	after.Spec.InitContainers[0].Image = "proxy:2"
	after.Spec.InitContainers = append([]corev1.Container{{Name: "first", Image: "tool"}}, after.Spec.InitContainers...)

	patch, err := jsonpatch.DiffRaw(raw, &before, after)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range patch {
		fmt.Println(op.Op, op.Path, string(op.Value))
	}
	// Output:
	// add /spec/initContainers/0/image "proxy:2"
	// add /spec/initContainers/0 {"name":"first","image":"tool","resources":{}}
}

func ExampleDiff() {
	before := map[string]any{"replicas": int64(1), "names": []any{"a", "b"}}
	after := map[string]any{"replicas": int64(9007199254740993), "names": []any{"b", "a"}}
	patch, err := jsonpatch.Diff(before, after)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(patch.AppendJSON(nil)))
	// Output:
	// [{"op":"move","path":"/names/0","from":"/names/1"},{"op":"add","path":"/replicas","value":9007199254740993}]
}
