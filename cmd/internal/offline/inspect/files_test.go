// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"path/filepath"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/golden"
)

// FuzzLint reads any text as objects and lints them.
func FuzzLint(f *testing.F) {
	seed := func(rule string) string {
		return string(golden.Open(f, filepath.Join("../lint/testdata/rules", rule+".txtar")).File("fail.yaml"))
	}
	f.Add([]byte(seed("wedge-wildcard")))
	f.Add([]byte(seed("timeout") + "---\n" + seed("wedge-wildcard") + "...\n# x\n---\n{\"a\":1}{"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [null, 1, {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {a: b}}}]\n"))
	for _, rule := range []string{"match-conditions", "loop", "ca-bundle", "static", "crd-client-config", "workload-network-policy", "workload-rbac-config"} {
		f.Add([]byte(seed(rule)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, documents, err := manifest.Parse("fuzz.yaml", data)
		if err == nil && len(parsed) > 0 && documents == 0 {
			t.Error("objects of no document")
		}
		var objects []lint.Object
		for _, object := range parsed {
			objects = append(objects, forLint(object))
		}
		in, err := lint.ReadFiles(objects)
		report := lint.Run(in, lint.Options{Paths: map[string][]string{"w.example.com": {"/w"}}})
		read := 0
		for _, n := range report.Checked {
			read += n
		}
		// Objects that were neither linted nor refused must be reported.
		if err == nil && read < len(objects) && len(report.Skipped) == 0 {
			t.Errorf("%d objects, %d looked at, and nothing said", len(objects), read)
		}
	})
}
