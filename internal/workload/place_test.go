// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
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
