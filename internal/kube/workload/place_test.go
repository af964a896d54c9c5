// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

func TestPlacesAreNamedAsPeopleDo(t *testing.T) {
	document := []byte(`{"metadata":{"labels":{"a.b/c":"1"}},"spec":{"containers":[{"name":"web","env":[{"name":"A"}],"volumeMounts":[{"mountPath":"/m","name":"v"}],` +
		`"ports":[{"containerPort":80}],"args":["x"]}],"tolerations":[{"operator":"Exists"}]}}`)
	for pointer, want := range map[string]string{
		"/spec/containers/0/env/0":              "spec.containers[web].env[A]",
		"/spec/containers/0/volumeMounts/0":     "spec.containers[web].volumeMounts[/m]",
		"/spec/containers/0/ports/0":            "spec.containers[web].ports[80]",
		"/spec/containers/0/args/0":             "spec.containers[web].args[0]",
		"/spec/tolerations/0":                   "spec.tolerations[0]",
		"/metadata/labels/a.b~1c":               "metadata.labels[a.b/c]",
		"/spec/serviceAccountName":              "spec.serviceAccountName",
		"/spec/containers/7/env/0":              "spec.containers.7.env.0", // it is gone
		"no pointer":                            "no pointer",
		"/spec/containers/0/env/0/value":        "spec.containers[web].env[A].value",
		"/spec/containers/0/volumeMounts/0/x~0": "spec.containers[web].volumeMounts[/m].x~",
	} {
		if got := Place(document, pointer); got != want {
			t.Errorf("%s: got %s, want %s", pointer, got, want)
		}
	}
}

func TestPartsAreFoundInAnotherVersionOfAPod(t *testing.T) {
	const before = `{"spec":{"containers":[{"name":"web","args":["x","y"],"env":[{"name":"A"},{"name":"B"}]}],"tolerations":[{"operator":"Exists"}]}}`
	const after = `{"spec":{"containers":[{"name":"mesh"},{"name":"web","args":["z","y"],"env":[{"name":"B","value":"1"}]}],"tolerations":[{"operator":"Equal"},{"operator":"Exists"}]}}`
	for pointer, want := range map[string]string{
		"/spec/containers/0":        "/spec/containers/1",
		"/spec/containers/0/env/1":  "/spec/containers/1/env/0",
		"/spec/containers/0/env/0":  "", // it is gone
		"/spec/containers/0/args/1": "/spec/containers/1/args/1",
		"/spec/containers/0/args/0": "",
		"/spec/tolerations/0":       "/spec/tolerations/1",
		"/spec/volumes/0":           "",
		"/spec/volumes":             "",
		"":                          "",
		"no pointer":                "",
	} {
		if got, ok := Relocate([]byte(before), pointer, []byte(after)); got != want || ok != (want != "" || pointer == "") {
			t.Errorf("%s: got %q, %v, want %s", pointer, got, ok, want)
		}
	}
}

func FuzzRelocate(f *testing.F) {
	f.Add(`{"spec":{"containers":[{"name":"a"}]}}`, "/spec/containers/0", `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`)
	f.Fuzz(func(t *testing.T, document, pointer, other string) {
		if !jsontext.Value(document).IsValid() || !jsontext.Value(other).IsValid() {
			return
		}
		found, ok := Relocate([]byte(document), pointer, []byte(other))
		if _, there := rawjson.Lookup([]byte(other), tokensOf(t, found)...); ok && !there {
			t.Errorf("%s is not in %s", found, other)
		}
	})
}

func tokensOf(t *testing.T, pointer string) []string {
	t.Helper()
	tokens, err := jsonpatch.SplitPointer(pointer)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}
