// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/test/lab"
)

const top = "../../../.."

// sallyport is the command under test.
func sallyport(t *testing.T) string {
	t.Helper()
	return lab.Command(t, "cmd/sallyport")
}

func withStderr(err error) string {
	text := err.Error()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text += "\n" + string(exit.Stderr)
	}
	return text
}

// output runs a command that has to succeed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %s", filepath.Base(name), strings.Join(args, " "), withStderr(err))
	}
	return string(out)
}

// parse reads a stream of YAML documents.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+text, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
	if len(out) == 0 {
		t.Fatalf("there is no object in\n%s", text)
	}
	return out
}

// others are definitions of those whose objects we install too, from their modules.
var others = []struct{ module, sum, files string }{
	{"github.com/cert-manager/cert-manager@v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=", "deploy/crds/cert-manager.io_*s.yaml"},
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=", "example/prometheus-operator-crd/monitoring.coreos.com_*s.yaml"},
}

// otherDefinitions downloads modules, unless they are in the module cache. Nothing of
// them is built.
func otherDefinitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	wanted := map[string]bool{
		"certificates.cert-manager.io": true, "issuers.cert-manager.io": true,
		"servicemonitors.monitoring.coreos.com": true, "prometheusrules.monitoring.coreos.com": true,
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, other := range others {
		var module struct{ Dir, Sum string }
		if err := json.Unmarshal([]byte(output(t, "go", "mod", "download", "-json", other.module)), &module); err != nil {
			t.Fatal(err)
		}
		if module.Sum != other.sum {
			t.Fatalf("%s has the sum %s, want %s", other.module, module.Sum, other.sum)
		}
		files, err := filepath.Glob(filepath.Join(module.Dir, other.files))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.TrimPrefix(text, []byte("---\n"))
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(text, crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if wanted[crd.Name] {
				out = append(out, crd)
				delete(wanted, crd.Name)
			}
		}
	}
	if len(wanted) > 0 {
		t.Fatalf("not found: %v", wanted)
	}
	return out
}
