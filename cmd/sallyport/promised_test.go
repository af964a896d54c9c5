// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/test/golden"
)

// promised compares what users rely on, one line each, with the record of what docs/compatibility.md promises.
// With -update it writes the record.
func promised(t *testing.T, name string, now []string) {
	t.Helper()
	slices.Sort(now)
	now = slices.Compact(now)
	file := filepath.Join("testdata", "promised", name)
	if golden.Update() {
		golden.Equal(t, file, strings.Join(now, "\n")+"\n")
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range changes(strings.Split(strings.TrimSpace(string(text)), "\n"), now) {
		t.Errorf("%s: %s", file, problem)
	}
}

// changes are the lines that are missing from a record, and those that it has too many.
func changes(record, now []string) []string {
	var out []string
	for _, line := range record {
		if !slices.Contains(now, line) {
			out = append(out, fmt.Sprintf("%q is promised and missing: keep it, deprecated, for one minor release at least, or say in CHANGELOG.md "+
				"what users must change, and record it: go test ./cmd/sallyport -run Promised -update", line))
		}
	}
	for _, line := range now {
		if !slices.Contains(record, line) {
			out = append(out, fmt.Sprintf("%q is not recorded: go test ./cmd/sallyport -run Promised -update", line))
		}
	}
	return out
}

func TestPromisedLinesThatChangeAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		record, now []string
		want        string
	}{
		"a flag is removed":         {[]string{"a --x string", "a --y int"}, []string{"a --y int"}, `"a --x string" is promised and missing`},
		"a flag has another type":   {[]string{"a --x string"}, []string{"a --x int"}, `"a --x string" is promised and missing`},
		"a flag is not recorded":    {nil, []string{"a --x string"}, `"a --x string" is not recorded`},
		"nothing that is different": {[]string{"a --x string"}, []string{"a --x string"}, ""},
	} {
		if got := strings.Join(changes(c.record, c.now), "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestPromisedFlags(t *testing.T) {
	var now []string
	everyCommand(func(cmd *cobra.Command) {
		if !cmd.Hidden {
			now = append(now, cmd.CommandPath())
		}
	})
	everyFlag(func(cmd *cobra.Command, flag *pflag.Flag) {
		if cmd.Hidden || flag.Hidden || flag.Name == "help" {
			return
		}
		line := cmd.CommandPath() + " --" + flag.Name + " " + flag.Value.Type()
		if flag.Shorthand != "" {
			line += " -" + flag.Shorthand
		}
		now = append(now, line)
	})
	promised(t, "flags.txt", now)
}

func TestPromisedExitStatuses(t *testing.T) {
	var now []string
	for _, e := range cli.ExitStatuses {
		meaning, _, _ := strings.Cut(e.Meaning, ":")
		now = append(now, fmt.Sprintf("%d %s", e.Status, meaning))
	}
	promised(t, "exits.txt", now)
}

func TestPromisedMetrics(t *testing.T) {
	var now []string
	help, labels := everyMetric(t)
	for name := range help {
		if strings.HasPrefix(name, "sallyport_") {
			now = append(now, name+"{"+strings.Join(slices.Sorted(slices.Values(labels[name])), ",")+"}")
		}
	}
	promised(t, "metrics.txt", now)
}

// A node is what this test reads of a JSON schema.
type node struct {
	Ref         string          `json:"$ref"`
	Type        any             `json:"type"`
	Enum        []any           `json:"enum"`
	Properties  map[string]node `json:"properties"`
	Items       *node           `json:"items"`
	Definitions map[string]node `json:"definitions"`
	AllOf       []struct {
		Then node `json:"then"` // settings of a webhook
	} `json:"allOf"`
}

// lines are the fields of a schema, with their types and values.
func (n node) lines(path string, definitions map[string]node) []string {
	if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		n = definitions[name]
	}
	line := path
	if n.Type != nil {
		line += " " + fmt.Sprint(n.Type)
	}
	for _, value := range n.Enum {
		line += fmt.Sprintf(" %v", value)
	}
	var out []string
	if path != "" {
		out = append(out, line)
	}
	for _, condition := range n.AllOf {
		out = append(out, condition.Then.lines(path, definitions)...)
	}
	for name, below := range n.Properties {
		out = append(out, below.lines(path+"."+name, definitions)...)
	}
	if n.Items != nil {
		out = append(out, n.Items.lines(path+"[]", definitions)...)
	}
	return out
}

func TestPromisedConfiguration(t *testing.T) {
	now := []string{"apiVersion " + configv1alpha1.APIVersion, "kind " + configv1alpha1.Kind}
	text, err := json.Marshal(serve.FileSchema())
	if err != nil {
		t.Fatal(err)
	}
	var schema node
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	promised(t, "configuration.txt", append(now, schema.lines("", schema.Definitions)...))
}

func TestPromisedValuesOfTheChart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(topFolder, "charts/sallyport/values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema node
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "config") // which is the file
	promised(t, "values.txt", schema.lines("", schema.Definitions))
}

// ofKubernetes are fields whose types are those of Kubernetes, which has its own promises.
var ofKubernetes = regexp.MustCompile(`\.(env|envFrom|volumes|volumeMounts|initContainers|sidecars|containers|tolerations|affinity|securityContext|` +
	`podSecurityContext|resources|lifecycle|resourceClaims|topologySpreadConstraints|matchExpressions|conditions|valueFrom|dnsConfig)(\[\])?[.\[]`)

func TestPromisedFieldsOfObjects(t *testing.T) {
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	now := []string{
		"annotation " + meta.MarkPrefix + "NAME", "annotation " + meta.ClusterMarkPrefix + "NAME", "annotation " + meta.ExcludeAnnotation,
	}
	for _, d := range definitions {
		for _, v := range d.Spec.Versions {
			where := d.Name + " " + v.Name
			now = append(now, fmt.Sprintf("%s served %v stored %v", where, v.Served, v.Storage))
			for _, line := range fields(where, *v.Schema.OpenAPIV3Schema) {
				if !ofKubernetes.MatchString(line) {
					now = append(now, line)
				}
			}
		}
	}
	if len(now) < 100 {
		t.Errorf("only %d fields", len(now))
	}
	promised(t, "fields.txt", now)
}

func fields(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	line := path + " " + schema.Type
	for _, value := range schema.Enum {
		line += " " + string(value.Raw)
	}
	out := []string{line}
	for name, below := range schema.Properties {
		out = append(out, fields(path+"."+name, below)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, fields(path+"[]", *schema.Items.Schema)...)
	}
	return out
}
