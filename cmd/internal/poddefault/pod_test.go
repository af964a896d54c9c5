// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMetadataIsReadInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	shuffled := func(members ...string) string {
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, " ,") + " }"
	}
	left := 0
	for range 500 {
		name := `"generateName":"job-"`
		if random.IntN(2) == 0 {
			name = `"name":"job-"`
		}
		metadata := shuffled(name, `"namespace":"team-a"`, `"labels":{"use":"gpu"}`, `"annotations":{"note":"x"}`,
			`"ownerReferences":[{"kind":"Job","name":"training","controller":true}]`, `"managedFields":[{"fieldsV1":{"spec":{}}}]`)
		const spec = `{"containers":[]}`
		raw := shuffled(`"kind":"Pod"`, `"metadata": `+metadata, `"spec": `+spec, `"status":{}`)

		meta, ok := readMetadata([]byte(raw))
		if !ok || meta.namespace != "team-a" || meta.labels.Get("use") != "gpu" || meta.annotations.Get("note") != "x" {
			t.Fatalf("got %+v of %s", meta, raw)
		}
		if meta.left > 0 {
			left++
		}
		b := newBounds(t.Context())
		if owner := controllerOf(&meta, &b); owner.Kind != "Job" || owner.Name != "training" {
			t.Errorf("got the controller %+v of %s", owner, raw)
		}
		if meta.name != "job-" || string(meta.raw) != metadata || !strings.HasPrefix(raw[meta.spec:], spec) {
			t.Errorf("got name %q, metadata %s and spec at %d of %s", meta.name, meta.raw, meta.spec, raw)
		}
	}
	if left < 100 {
		t.Errorf("only %d of the pods were not read to their end at once", left)
	}
}
