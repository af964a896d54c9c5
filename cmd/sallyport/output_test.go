// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollout"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/recorded"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/suite"
	"github.com/sallyport-io/sallyport/internal/install/authority"
	"github.com/sallyport-io/sallyport/test/golden"
)

// outputs are what commands print as JSON and YAML.
var outputs = map[string]any{
	"certificates status": authority.Status{},
	"chain":               chain.Result{},
	"chain --list":        inspect.Chain{},
	"doctor":              doctor.Report{},
	"drift":               carried.Drift{},
	"explain":             injection.Explanation{},
	"lint":                inspect.Document{},
	"preview":             previewed{},
	"replay":              recorded.Result{},
	"rollout diff":        revisionDiff{},
	"rollout history":     rolloutHistory{},
	"rollout status":      rollout.State{},
	"test":                suite.Document{},
	"top":                 topDocument{},
	"version":             programVersion{},
	"webhooks":            []readyMade{},
}

// objectOutputs print objects of Kubernetes.
var objectOutputs = []string{"diff", "review"}

var outputBlock = regexp.MustCompile(`(?s)(<!-- outputs, from cmd/sallyport/output_test.go[^\n]* -->\n).*(<!-- end -->\n)`)

// TestOutputsAreDocumented has the fields of the output of each command that has -o json. With -update it writes them.
func TestOutputsAreDocumented(t *testing.T) {
	undocumented := slices.Collect(maps.Keys(outputs))
	everyFlag(func(cmd *cobra.Command, flag *pflag.Flag) {
		if flag.Name != "output" || cmd.Hidden {
			return
		}
		command := strings.TrimPrefix(cmd.CommandPath(), "sallyport ")
		undocumented = slices.DeleteFunc(undocumented, func(name string) bool { return name == command || strings.HasPrefix(name, command+" --") })
		if _, is := outputs[command]; is == slices.Contains(objectOutputs, command) {
			t.Errorf("%s: it is not known what it prints as JSON", command)
		}
		for _, format := range []string{"json", "yaml"} {
			if !strings.Contains(flag.Usage, format) {
				t.Errorf("%s has no -o %s: %s", command, format, flag.Usage)
			}
		}
	})
	if len(undocumented) > 0 {
		t.Errorf("there are no commands %q", undocumented)
	}
	var out strings.Builder
	for _, command := range slices.Sorted(maps.Keys(outputs)) {
		fmt.Fprintf(&out, "\n### %s\n\n| field | type |\n|---|---|\n", command)
		for _, line := range outputFields("", reflect.TypeOf(outputs[command]), nil) {
			out.WriteString(line + "\n")
		}
	}
	const path = "../../docs/output.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !outputBlock.Match(raw) {
		t.Fatalf("%s has no block", path)
	}
	golden.Equal(t, path, outputBlock.ReplaceAllStringFunc(string(raw), func(block string) string {
		parts := outputBlock.FindStringSubmatch(block)
		return parts[1] + out.String() + "\n" + parts[2]
	}))
}

// outputFields are the rows of a table of the fields below a path.
func outputFields(path string, of reflect.Type, above []reflect.Type) (rows []string) {
	name := ""
	switch kind := of.Kind(); {
	case kind == reflect.Pointer:
		return outputFields(path, of.Elem(), above)
	case of.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()):
		name = "string"
		if of.String() == "jsontext.Value" || of.String() == "json.RawMessage" {
			name = "any JSON"
		}
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		name = "string"
	case strings.HasPrefix(of.PkgPath(), "k8s.io/") && kind == reflect.Struct:
		name = "Kubernetes' " + of.Name()
	case slices.Contains(above, of):
		name = "as above"
	case kind == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		name = "string"
	case kind == reflect.Slice || kind == reflect.Array:
		return outputFields(path+"[]", of.Elem(), above)
	case kind == reflect.Map:
		return outputFields(path+".*", of.Elem(), above)
	case kind == reflect.Struct:
		for i := range of.NumField() {
			rows = append(rows, outputField(path, of.Field(i), append(above, of))...)
		}
		return rows
	case kind == reflect.Interface:
		name = "any JSON"
	case kind == reflect.Bool:
		name = "boolean"
	case kind == reflect.String:
		name = "string"
	case kind == reflect.Float64 || kind == reflect.Float32:
		name = "number"
	default:
		name = "integer"
	}
	return []string{fmt.Sprintf("| `%s` | %s |", strings.TrimPrefix(path, "."), name)}
}

func outputField(path string, field reflect.StructField, above []reflect.Type) []string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name == "-":
		return nil
	case field.Anonymous && name == "", strings.Contains(options, "inline"):
		return outputFields(path, field.Type, above)
	case !field.IsExported():
		return nil
	case name == "":
		name = field.Name
	}
	rows := outputFields(path+"."+name, field.Type, above)
	if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
		for i := range rows[:min(len(rows), 1)] {
			rows[i] = strings.TrimSuffix(rows[i], " |") + ", may be missing |"
		}
	}
	return rows
}
