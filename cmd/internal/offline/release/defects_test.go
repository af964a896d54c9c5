// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// What API servers 1.36.3 and 1.37.1 do with these expressions is in a test of package chain.
func TestDefectsAreFoundWhereTheyAreMet(t *testing.T) {
	for _, tc := range []struct {
		name, value         string
		objects, copiedFrom release.Presence
	}{
		{"a list of Object literals", "[Object.spec.tolerations{key: 'a'}]", release.Certain, release.Absent},
		{"a map of them", "{'a': Object.metadata.annotations{}}", release.Certain, release.Absent},
		{"a list in a map", "{'a': [Object.spec{}]}", release.Certain, release.Absent},
		{"a list made by a macro", "object.spec.containers.map(c, Object.spec.initContainers{name: c.name})", release.Possible, release.Absent},
		{"a filtered list", "[Object.spec.tolerations{key: 'a'}].filter(t, true)", release.Possible, release.Absent},
		{"a list in a branch", "has(object.spec.x) ? [] : [Object.spec.tolerations{key: 'a'}]", release.Possible, release.Absent},
		{"an optional element", "[?optional.of(Object.spec.tolerations{key: 'a'})]", release.Absent, release.Absent},
		{"a sum of lists", "object.spec.tolerations + [Object.spec.tolerations{key: 'a'}]", release.Absent, release.Absent},
		{"an Object literal", "Object.spec.initContainers{name: 'a', env: [Object.spec.initContainers.env{name: 'A'}]}", release.Absent, release.Absent},
		{"a list of maps", "[{'key': 'a'}]", release.Absent, release.Absent},
		{"what the object has", "object.spec.containers", release.Absent, release.Absent},
		{"a map of the parameter", "params.data", release.Absent, release.Certain},
		{"a value of it", "params.data.key", release.Absent, release.Absent},
		{"labels of the namespace in a branch", "true ? namespaceObject.metadata.labels : {}", release.Absent, release.Possible},
		{"a label of it", "{'a': namespaceObject.metadata.labels.b}", release.Absent, release.Absent},
		{"groups of the user in a map", "{'a': request.userInfo.groups}", release.Absent, release.Certain},
		{"groups of the user, copied", "request.userInfo.groups.map(g, g)", release.Absent, release.Absent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := reads.Parse("[JSONPatch{op: 'add', path: '/a', value: " + tc.value + "}]")
			if tree == nil {
				t.Fatal("it is not parsed")
			}
			if objects, copied := release.Find(release.ObjectList).Found(tree), release.Find(release.CopiedValue).Found(tree); objects != tc.objects || copied != tc.copiedFrom {
				t.Errorf("lists of Objects: %v, copied values: %v", objects, copied)
			}
			inBranch := reads.Parse("has(object.a) ? [JSONPatch{op: 'add', path: '/a', value: " + tc.value + "}] : []")
			if got := release.Find(release.ObjectList).Found(inBranch); got != min(tc.objects, release.Possible) {
				t.Errorf("in a branch: %v", got)
			}
		})
	}
	if got := release.Find(release.ObjectList).Found(nil); got != release.Absent {
		t.Errorf("of what is not parsed: %v", got)
	}
}

func TestADefectIsInTheReleasesThatHaveIt(t *testing.T) {
	for text, want := range map[string][2]release.Presence{
		"": {release.Possible, release.Possible}, "1.36": {release.Possible, release.Absent}, "1.36.4": {release.Certain, release.Absent}, "v1.36.5": {release.Absent, release.Absent},
		"1.37": {release.Absent, release.Certain}, "v1.37.2-eks-1": {release.Absent, release.Certain}, "1.35": {release.Possible, release.Absent}, "1.35.7": {release.Certain, release.Absent}, "1.35.8": {release.Absent, release.Absent}, "1.34": {release.Certain, release.Absent}, "1.34.13": {release.Certain, release.Absent}, "1.38": {release.Absent, release.Absent},
	} {
		var v release.Version
		if text != "" {
			if err := v.Set(text); err != nil {
				t.Fatal(err)
			}
		}
		if got := [2]release.Presence{release.Find(release.ObjectList).In(v), release.Find(release.CopiedValue).In(v)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
