// SPDX-License-Identifier: Apache-2.0

package reads_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
)

// read returns the fields that an expression reads, sorted; a question mark marks those of which only the
// presence decides.
func read(expression string, variables map[string]string) string {
	var out []string
	for _, r := range reads.Of(expression, variables) {
		if r.Shallow {
			out = append(out, r.String()+"?")
		} else {
			out = append(out, r.String())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestAnExpressionReadsTheFieldsThatItsSyntaxTreeSelects(t *testing.T) {
	variables := map[string]string{
		"spec": "object.spec", "images": "object.spec.containers.map(c, c.image)", "circle": "variables.circle", "deep": "variables.spec.template",
	}
	for expression, want := range map[string]string{
		"object.spec.priority > 0":                                                "object.spec.priority",
		"has(object.spec.priority)":                                               "object.spec.priority?",
		"object.spec.containers.all(c, c.image != 'object.spec.priority')":        "object.spec.containers? object.spec.containers[*].image",
		"object.spec.containers[0].image == 'x' // object.spec.priority":          "object.spec.containers[*].image",
		"object.metadata.labels['app'] == 'x'":                                    "object.metadata.labels.app",
		"object.?metadata.?labels[?'app'].orValue('') == 'x'":                     "object.metadata.labels.app object.metadata.labels.app?",
		"object == oldObject":                                                     "object oldObject",
		"oldObject == null || object.spec != oldObject.spec":                      "object.spec oldObject.spec oldObject?",
		"size(object.spec.tolerations) == 0":                                      "object.spec.tolerations?",
		"object.spec.tolerations.size() == 0":                                     "object.spec.tolerations?",
		"variables.spec.priority == 0":                                            "object.spec.priority",
		"variables.deep.spec.x == 0":                                              "object.spec.template.spec.x",
		"variables.images.exists(i, i == 'x')":                                    "object.spec.containers? object.spec.containers[*].image",
		"variables.circle == 1":                                                   "",
		"object.spec.volumes.filter(v, has(v.hostPath)).size() == 0":              "object.spec.volumes? object.spec.volumes[*] object.spec.volumes[*].hostPath?",
		"(has(params.x) ? object.spec : oldObject.spec).priority == 1":            "object.spec.priority oldObject.spec.priority params.x?",
		"request.options.fieldManager == 'x'":                                     "request.options.fieldManager",
		"'a' in object.metadata.labels":                                           "object.metadata.labels.a object.metadata.labels? object.metadata.labels[*]",
		"object.metadata.labels.all(k, v, v != k)":                                "object.metadata.labels? object.metadata.labels[*]",
		"namespaceObject.metadata.uid != ''":                                      "namespaceObject.metadata.uid",
		"Object{metadata: Object.metadata{labels: {'u': object.metadata.uid}}}":   "object.metadata.uid",
		"[JSONPatch{op: 'add', path: '/x', value: string(object.spec.priority)}]": "object.spec.priority",
		"object.spec.": "",
	} {
		if got := read(expression, variables); got != want {
			t.Errorf("%s\n got %s\nwant %s", expression, got, want)
		}
	}
}
