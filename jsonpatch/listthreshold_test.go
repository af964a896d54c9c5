// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	evanphx "gopkg.in/evanphx/json-patch.v4"
)

// BenchmarkListThreshold measures what the API server spends on a patch that
// adds elements to one list of a pod: an operation an element, or one operation
// with the whole list. It decodes the webhook's answer and the patch, applies it,
// and writes it into an audit annotation.
func BenchmarkListThreshold(b *testing.B) {
	for _, kind := range []struct {
		name    string
		path    string
		element string
	}{
		{"env60B", "/spec/containers/0/env", `{"name":"SETTING_%04d","value":"` + strings.Repeat("v", 28) + `"}`},
		{"volume150B", "/spec/volumes", `{"name":"data-%04d","persistentVolumeClaim":{"claimName":"` + strings.Repeat("c", 82) + `"}}`},
		{"container800B", "/spec/containers", `{"name":"sidecar-%04d","image":"registry.example.com/team/image:1.0","args":["` + strings.Repeat("a", 300) + `"],"env":[{"name":"A","value":"` + strings.Repeat("b", 300) + `"}]}`},
	} {
		for _, existing := range []int{0, 1, 5, 20, 100} {
			for _, added := range []int{1, 2, 3, 5, 10, 20} {
				raw, whole, each := thresholdCase(kind.path, kind.element, existing, added)
				for _, shape := range []struct {
					name  string
					patch Patch
				}{{"elements", each}, {"list", whole}} {
					name := fmt.Sprintf("%s/existing=%d/added=%d/%s", kind.name, existing, added, shape.name)
					b.Run(name, func(b *testing.B) { benchmarkAPIServer(b, raw, shape.patch) })
				}
			}
		}
	}
}

func thresholdCase(path, element string, existing, added int) (raw []byte, whole, each Patch) {
	pod := notebookPod()
	old := make([]string, existing)
	for i := range old {
		old[i] = fmt.Sprintf(element, i)
	}
	tokens, _ := SplitPointer(path)
	builder := NewBuilder(pod)
	list := "[" + strings.Join(old, ",") + "]"
	builder.Set(jsontext.Value(list), tokens...)
	patch, err := builder.Patch()
	if err != nil {
		panic(err)
	}
	decoded, err := evanphx.DecodePatch(patch.AppendJSON(nil))
	if err != nil {
		panic(err)
	}
	raw, err = decoded.Apply(pod)
	if err != nil {
		panic(err)
	}
	all := old
	for i := range added {
		value := fmt.Sprintf(element, 1000+i)
		all = append(all, value)
		each = append(each, Operation{Op: Add, Path: path + "/-", Value: jsontext.Value(value)})
	}
	whole = Patch{{Op: Add, Path: path, Value: jsontext.Value("[" + strings.Join(all, ",") + "]")}}
	return raw, whole, each
}

func benchmarkAPIServer(b *testing.B, raw []byte, patch Patch) {
	type answer struct {
		Patch []byte `json:"patch"`
	}
	wire := []byte(`{"patch":"` + base64.StdEncoding.EncodeToString(patch.AppendJSON(nil)) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		var a answer
		if err := json.Unmarshal(wire, &a); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(map[string]string{"patch.webhook.admission.k8s.io/round_0_index_0": string(a.Patch)}); err != nil {
			b.Fatal(err)
		}
		decoded, err := evanphx.DecodePatch(a.Patch)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := decoded.Apply(raw); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(wire)), "wire-B")
}
