// SPDX-License-Identifier: Apache-2.0

package podmeta

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
		const owners = `[{"kind":"Job","name":"training","controller":true}]`
		metadata := shuffled(name, `"namespace":"team-a"`, `"labels":{"use":"gpu"}`, `"annotations":{"note":"x"}`,
			`"ownerReferences":`+owners, `"managedFields":[{"fieldsV1":{"spec":{}}}]`)
		const spec = `{"containers":[]}`
		raw := shuffled(`"kind":"Pod"`, `"metadata": `+metadata, `"spec": `+spec, `"status":{}`)

		md, ok := Read([]byte(raw), Selected)
		if !ok || md.Namespace != "team-a" || md.Labels.Get("use") != "gpu" || md.Annotations.Get("note") != "x" {
			t.Fatalf("got %+v of %s", md, raw)
		}
		if md.left > 0 {
			left++
		}
		md.Complete()
		if md.Name != "job-" || string(md.Raw) != metadata || string(md.Owners) != owners || !strings.HasPrefix(raw[md.Spec:], spec) {
			t.Errorf("got name %q, owners %s, metadata %s and spec at %d of %s", md.Name, md.Owners, md.Raw, md.Spec, raw)
		}
	}
	if left < 100 {
		t.Errorf("only %d of the pods were not read to their end at once", left)
	}
}
