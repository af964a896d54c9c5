// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

const (
	quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {HARD}}}"
	plain = "spec: {containers: [{name: main, image: i}]}"
)

// The API server's answers to most of these are in cmd/test/deceiving.
func TestPluginsDecideWhatIsCertain(t *testing.T) {
	for name, c := range map[string]struct {
		objects, pod    string
		denied, unknown string // parts; empty if it is not
	}{
		"nothing is there":                         {pod: plain},
		"a class of the system needs no object":    {pod: "spec: {priorityClassName: system-node-critical, containers: [{name: main, image: i}]}"},
		"no other class begins as those do":        {pod: "spec: {priorityClassName: system-x, containers: [{name: main, image: i}]}", denied: "no PriorityClass with name system-x"},
		"the priority is that of the class":        {objects: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 7}", pod: "spec: {priority: 7, priorityClassName: a, containers: [{name: main, image: i}]}"},
		"the priority is that of the default":      {objects: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 7, globalDefault: true}", pod: "spec: {priority: 7, containers: [{name: main, image: i}]}"},
		"the priority is not that of the class":    {objects: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 7}", pod: "spec: {priority: 8, priorityClassName: a, containers: [{name: main, image: i}]}", denied: "spec.priority is 8"},
		"another object of the kind is no answer":  {objects: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 7}", pod: "spec: {priorityClassName: b, containers: [{name: main, image: i}]}", unknown: "PriorityClass b exists, which PodDefault x sets"},
		"pods that are preempted never":            {pod: "spec: {preemptionPolicy: Never, containers: [{name: main, image: i}]}", denied: "spec.preemptionPolicy is Never"},
		"an overhead without class":                {pod: "spec: {overhead: {cpu: 1m}, containers: [{name: main, image: i}]}", denied: "spec.overhead is set"},
		"a service account of another namespace":   {objects: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: other}}", pod: "spec: {serviceAccountName: a, containers: [{name: main, image: i}]}", unknown: "ServiceAccount a exists in the namespace team-a"},
		"a mirror pod needs no service account":    {pod: "{metadata: {annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n, containers: [{name: main, image: i}]}}"},
		"a quota without status, for more than it": {objects: strings.ReplaceAll(quota, "HARD", `pods: "0"`), pod: plain, denied: "exceeded quota: q"},
		"a quota without status, for less than it": {objects: strings.ReplaceAll(quota, "HARD", `pods: "2"`), pod: plain, unknown: "status does not say how much of pods is used"},
		"a quota that demands limits":              {objects: strings.ReplaceAll(quota, "HARD", `limits.cpu: "2"`), pod: plain, denied: "limits.cpu of each container, and there is none in main"},
		"a quota of other objects":                 {objects: strings.ReplaceAll(quota, "HARD", `services: "0"`), pod: plain},
		"a quota of devices":                       {objects: strings.ReplaceAll(quota, "HARD", `requests.example.com/gpu: "1"`), pod: `spec: {containers: [{name: main, image: i, resources: {limits: {example.com/gpu: "2"}}}]}`, denied: "requests.example.com/gpu"},
		"a quota of another namespace":             {objects: "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: other}, spec: {hard: {pods: '0'}}}", pod: plain},
		"a maximum becomes the default":            {objects: "{apiVersion: v1, kind: LimitRange, metadata: {name: r}, spec: {limits: [{type: Container, max: {cpu: 1}}]}}", pod: plain},
	} {
		t.Run(name, func(t *testing.T) {
			objects, _, err := manifest.Parse("objects.yaml", []byte(c.objects))
			if err != nil && c.objects != "" {
				t.Fatal(err)
			}
			known, err := Read(objects, "team-a")
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			if err := yaml.UnmarshalStrict([]byte(c.pod), pod); err != nil {
				t.Fatal(err)
			}
			var a Answer
			known.CheckPod(&a, Pod{Namespace: "team-a", Sent: pod, Final: pod, Origins: []admission.Origin{{Path: "/spec/priorityClassName", Source: "PodDefault x"}}})
			denied := ""
			if a.Denied != nil {
				denied = a.Denied.Message
			}
			for _, one := range []struct{ got, want string }{{denied, c.denied}, {strings.Join(a.Unknown, "\n"), c.unknown}} {
				if (one.got == "") != (one.want == "") || !strings.Contains(one.got, one.want) {
					t.Errorf("%q, want %q", one.got, one.want)
				}
			}
		})
	}
}

func TestANamespaceThatIsNotAmongThoseOfTheFilesIsUnknown(t *testing.T) {
	objects, _, err := manifest.Parse("objects.yaml", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: b, deletionTimestamp: '2026-01-01T00:00:00Z'}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := Read(objects, "a")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "", "b": "denied", "c": "unknown", "default": "open"} {
		var a Answer
		known.CheckNamespace(&a, name)
		got := ""
		switch {
		case a.Denied != nil:
			got = "denied"
		case len(a.Unknown) > 0:
			got = "unknown"
		case a.Open.String() != "":
			got = "open"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestWhatIsOpenIsOneLine(t *testing.T) {
	var all Open
	for _, namespace := range []string{"e", "d", "c", "b", "a", "a"} {
		var one Open
		one.add(openQuotas, namespace)
		all.Add(&one)
	}
	if got, want := all.String(), "not decided without a cluster: whether the pods suit the ResourceQuotas of a, b, c and 2 more namespaces; --with takes them"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
