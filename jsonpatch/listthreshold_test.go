// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	evanphx "gopkg.in/evanphx/json-patch.v4"
)

// BenchmarkListThreshold measures the API server's cost of a patch that adds elements
// to one list of a pod, with one operation per element or one operation for the whole
// list. It decodes the webhook's answer and the patch, applies it and writes it into an
// audit annotation. Decoding the pod costs the same in both cases. It alternates
// between the two and reports the minimum of each, so that other load on the machine
// does not matter.
func BenchmarkListThreshold(b *testing.B) {
	for _, kind := range []struct {
		name    string
		path    string
		element string
	}{
		{"60 B", "/spec/containers/0/env", `{"name":"SETTING_%04d","value":"` + strings.Repeat("v", 28) + `"}`},
		{"150 B", "/spec/volumes", `{"name":"data-%04d","persistentVolumeClaim":{"claimName":"` + strings.Repeat("c", 88) + `"}}`},
		{"800 B", "/spec/containers", `{"name":"sidecar-%04d","image":"registry.example.com/team/image:1.0","args":["` + strings.Repeat("a", 340) + `"],"env":[{"name":"A","value":"` + strings.Repeat("b", 340) + `"}]}`},
	} {
		for _, existing := range []int{0, 5, 20, 100} {
			for _, added := range []int{1, 2, 5, 10} {
				b.Run(fmt.Sprintf("%d x %s + %d", existing, kind.name, added), func(b *testing.B) {
					raw, shapes := thresholdCase(b, kind.path, kind.element, existing, added)
					var least [2]time.Duration
					for b.Loop() {
						for i, answer := range shapes {
							start := time.Now()
							answerAsAPIServer(b, raw, answer)
							if took := time.Since(start); least[i] == 0 || took < least[i] {
								least[i] = took
							}
						}
					}
					b.ReportMetric(float64(least[0].Microseconds()), "µs-elements")
					b.ReportMetric(float64(least[1].Microseconds()), "µs-list")
				})
			}
		}
	}
}

// thresholdCase returns the pod and two answers of the webhook: one operation per
// element, and one for the list.
func thresholdCase(b *testing.B, path, element string, existing, added int) (raw []byte, answers [2][]byte) {
	list := func(first, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf(element, first+i)
		}
		return out
	}
	whole := func(elements ...string) Patch {
		return Patch{{Op: Add, Path: path, Value: json.RawMessage("[" + strings.Join(elements, ",") + "]")}}
	}
	raw = apply(b, string(notebookPod()), whole(list(0, existing)...))
	var each Patch
	for _, value := range list(1000, added) {
		each = append(each, Operation{Op: Add, Path: path + "/-", Value: json.RawMessage(value)})
	}
	for i, patch := range []Patch{each, whole(append(list(0, existing), list(1000, added)...)...)} {
		answers[i] = []byte(`{"patch":"` + base64.StdEncoding.EncodeToString(patch.AppendJSON(nil)) + `"}`)
	}
	return raw, answers
}

func answerAsAPIServer(b *testing.B, raw, wire []byte) {
	var answer struct {
		Patch []byte `json:"patch"`
	}
	if err := json.Unmarshal(wire, &answer); err != nil {
		b.Fatal(err)
	}
	patch, err := evanphx.DecodePatch(answer.Patch)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := patch.Apply(raw); err != nil {
		b.Fatal(err)
	}
	if _, err := json.Marshal(map[string]string{"patch.webhook.admission.k8s.io/round_0_index_0": string(answer.Patch)}); err != nil {
		b.Fatal(err)
	}
}
