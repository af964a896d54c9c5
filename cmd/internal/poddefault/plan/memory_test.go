// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/json/decode"
)

// TestAPlanKeepsNoMemoryOfItsObject: strings of an object that was read from a list share blocks of memory, so a plan
// that kept one of them would keep a block. Objects of encoding/json share nothing.
func TestAPlanKeepsNoMemoryOfItsObject(t *testing.T) {
	const objects = 2000
	typ := decode.For(reflect.TypeFor[kubeflowv1alpha1.PodDefault]())
	object := func(i int) []byte {
		return fmt.Appendf(nil, `{"metadata":{"namespace":"team-a","name":"proxy-%05d","uid":"%05d","resourceVersion":"7"},"spec":{
			"conflictPolicy":"Skip","exclusiveGroup":"proxies","labels":{"proxy":"%05d"},"selector":{"matchLabels":{"use-proxy-%05d":"true"},
			"matchExpressions":[{"key":"tier","operator":"In","values":["a%05d"]}]},"env":[{"name":"HTTP_PROXY","value":"http://proxy:%d"}]},
			"status":{"currentRevision":"r%05d","conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"m%05d","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
			i, i, i, i, i, i, i, i)
	}
	taken := func(read func([]byte) (any, error)) uint64 {
		all := make([]*Plan, 0, objects)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range objects {
			pd, err := read(object(i))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, Pack(pd.(*kubeflowv1alpha1.PodDefault), nil, nil))
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(all)
		return (after.HeapAlloc - before.HeapAlloc) / objects
	}
	separate := func(raw []byte) (any, error) {
		pd := &kubeflowv1alpha1.PodDefault{}
		return pd, json.Unmarshal(raw, pd)
	}
	taken(separate) // fills pools
	want, got := taken(separate), taken(func(raw []byte) (any, error) { return typ.New(raw, nil) })
	if got > want+64 {
		t.Errorf("a plan takes %d bytes, and %d if its object's strings share nothing", got, want)
	}
	t.Logf("%d and %d bytes", got, want)
}
