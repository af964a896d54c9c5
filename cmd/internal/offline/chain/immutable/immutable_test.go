// SPDX-License-Identifier: Apache-2.0

package immutable_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/immutable"
)

func TestFieldsThatTheAPIServerRestrictsAreFoundOnUpdates(t *testing.T) {
	core := func(kind string) schema.GroupKind { return schema.GroupKind{Kind: kind} }
	apps := func(kind string) schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: kind} }
	for name, c := range map[string]struct {
		kind             schema.GroupKind
		old, after, want string
	}{
		"an address of a Service that had none in the file": {core("Service"), "{spec: {}}", "{spec: {clusterIP: 10.0.0.1}}", "spec.clusterIP"},
		"an address of a Service that is left out":          {core("Service"), "{spec: {clusterIP: 10.0.0.1, ports: [{port: 1, nodePort: 30000}]}}", "{spec: {ports: [{port: 1}]}}", ""},
		"another port of a Service":                         {core("Service"), "{spec: {ports: [{port: 1}]}}", "{spec: {ports: [{port: 2}]}}", ""},
		"a node port of a Service":                          {core("Service"), "{spec: {ports: [{port: 1}]}}", "{spec: {ports: [{port: 1, nodePort: 30000}]}}", "spec.ports.nodePort"},
		"a Service that becomes one of another type":        {core("Service"), "{spec: {type: ClusterIP}}", "{spec: {type: NodePort}}", ""},
		"a Service that loses its address":                  {core("Service"), "{spec: {type: ClusterIP}}", "{spec: {type: ExternalName}}", "spec.type"},
		"an image of a pod":                                 {core("Pod"), "{spec: {containers: [{name: a, image: i}]}}", "{spec: {containers: [{name: a, image: j}]}}", ""},
		"a command of a pod":                                {core("Pod"), "{spec: {containers: [{name: a}, {name: b}]}}", "{spec: {containers: [{name: a}, {name: b, command: [x]}]}}", "spec.containers[1].command"},
		"a label of a pod":                                  {core("Pod"), "{metadata: {}}", "{metadata: {labels: {a: b}}}", ""},
		"data of a ConfigMap":                               {core("ConfigMap"), "{data: {a: b}}", "{data: {a: c}}", ""},
		"data of an immutable ConfigMap":                    {core("ConfigMap"), "{immutable: true, data: {a: b}}", "{immutable: true, data: {a: c}}", "data.a"},
		"an immutable Secret that is no longer one":         {core("Secret"), "{immutable: true}", "{}", "immutable"},
		"the type of a Secret":                              {core("Secret"), "{type: Opaque}", "{type: other}", "type"},
		"replicas of a Deployment":                          {apps("Deployment"), "{spec: {replicas: 1}}", "{spec: {replicas: 2}}", ""},
		"the selector of a Deployment":                      {apps("Deployment"), "{spec: {selector: {matchLabels: {a: b}}}}", "{spec: {selector: {matchLabels: {a: c}}}}", "spec.selector.matchLabels.a"},
		"replicas of a StatefulSet":                         {apps("StatefulSet"), "{spec: {replicas: 1, serviceName: s}}", "{spec: {replicas: 2, serviceName: s}}", ""},
		"the service of a StatefulSet":                      {apps("StatefulSet"), "{spec: {replicas: 1, serviceName: s}}", "{spec: {replicas: 2, serviceName: t}}", "spec.serviceName"},
		"a kind that is not known":                          {schema.GroupKind{Group: "x", Kind: "Y"}, "{spec: {a: b}}", "{spec: {a: c}}", ""},
	} {
		var old, after map[string]any
		for text, into := range map[string]*map[string]any{c.old: &old, c.after: &after} {
			if err := yaml.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		if got := immutable.Changed(c.kind, old, after); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
