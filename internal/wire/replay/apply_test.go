// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
)

// Each copy into itself doubles the value: 40 of them would make a terabyte.
func TestCopiesOfAPatchAreLimitedAsByTheAPIServer(t *testing.T) {
	operations := []string{`{"op":"add","path":"/a","value":["some text"]}`}
	for range 40 {
		operations = append(operations, `{"op":"copy","from":"/a","path":"/a/-"}`)
	}
	patch := "[" + strings.Join(operations, ",") + "]"
	if len(patch) > 2<<10 {
		t.Fatalf("the patch has %d bytes", len(patch))
	}
	if _, err := Apply([]byte(`{"kind":"Pod"}`), []byte(patch)); err == nil || !strings.Contains(err.Error(), "exceed") {
		t.Errorf("got %v", err)
	}
	after, err := Apply([]byte(`{"a":1}`), []byte(`[{"op":"copy","from":"/a","path":"/b"}]`))
	if err != nil || string(after) != `{"a":1,"b":1}` {
		t.Errorf("a small copy: %s, %v", after, err)
	}
}

// same compares the result with that of the library alone.
func same(t *testing.T, object, patch string) {
	t.Helper()
	decoded, err := jsonpatchv4.DecodePatch([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	LimitCopies()
	want, errWant := decoded.Apply([]byte(object))
	got, errGot := Apply([]byte(object), []byte(patch))
	if (errWant == nil) != (errGot == nil) {
		t.Fatalf("%s:\ngot %v, want %v", patch, errGot, errWant)
	}
	if errWant != nil {
		return
	}
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%s:\n%s\n%v", patch, got, err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("%s:\ngot  %s\nwant %s", patch, got, want)
	}
}

func TestPatchesOfLargeObjectsApplyAsTheLibraryAppliesThem(t *testing.T) {
	var values []string
	for i := range 60 {
		values = append(values, fmt.Sprintf(`{"name":"VARIABLE_%d","value":"a value that is longer than a placeholder %d"}`, i, i))
	}
	object := `{"metadata":{"annotations":{"a/b":"` + strings.Repeat("x", 50) + `"}}, "list":[` + strings.Join(values, ", ") + `],"nested":[{"env":[` + strings.Join(values, ",") + `]},{"env":[]}],"null":null}`
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	paths := func() string {
		return pick("/list/-", "/list/0", "/list/59", "/list/-1", "/list/7/value", "/list/8/value/x", "/nested/0/env/-", "/nested/1/env/0", "/nested/1/env", "/nested/0",
			"/metadata/annotations/a~1b", "/metadata/annotations/c", "/metadata/annotations", "/metadata/none/c", "/null/x", "/null", "/nested/0/env/0/name", "/list/100", "")
	}
	for range 3000 {
		var operations []string
		for range 1 + random.IntN(4) {
			switch op := pick("add", "replace", "remove", "add", "test", "move", "copy"); op {
			case "remove":
				operations = append(operations, fmt.Sprintf(`{"op":"remove","path":%q}`, paths()))
			case "move", "copy":
				operations = append(operations, fmt.Sprintf(`{"op":%q,"from":%q,"path":%q}`, op, paths(), paths()))
			default:
				operations = append(operations, fmt.Sprintf(`{"op":%q,"path":%q,"value":%s}`, op, paths(), pick(`"x"`, `{"env":[],"name":"n","value":{}}`, `[]`, `null`)))
			}
		}
		patch := "[" + strings.Join(operations, ",") + "]"
		func() {
			defer func() {
				if problem := recover(); problem != nil {
					t.Logf("the library panics on %s: %v", patch, problem)
				}
			}()
			same(t, object, patch)
		}()
	}
}
