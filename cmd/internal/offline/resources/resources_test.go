// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

const crontabs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions:
  - {name: v2, served: true, storage: true}
  - {name: v1, served: true, storage: false}
  - {name: v0, served: false, storage: false}
`

func ofFiles(t *testing.T) *Set {
	t.Helper()
	objects, _, err := manifest.Parse("crd.yaml", []byte(crontabs))
	if err != nil {
		t.Fatal(err)
	}
	set, err := OfFiles(objects)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestResourcesAreFoundByTheNamesThatKubectlTakes(t *testing.T) {
	set := ofFiles(t)
	for name, want := range map[string]string{
		"pods": "pods /v1 true", "po": "pods /v1 true", "Pod": "pods /v1 true", "deployments.apps": "deployments apps/v1 true",
		"deployments.v1.apps": "deployments apps/v1 true", "deploy": "deployments apps/v1 true", "events": "events /v1 true",
		"nodes": "nodes /v1 false", "clusterpoddefaults": "clusterpoddefaults sallyport.io/v1alpha1 false",
		"ct": "crontabs example.com/v2 true", "crontab.example.com": "crontabs example.com/v2 true", "crontabs.v1.example.com": "crontabs example.com/v1 true",
		"crontabs.v0.example.com": "", "things": "", "": "",
	} {
		got := ""
		r, err := set.Find(name)
		if err == nil {
			got = r.Resource + " " + r.Group + "/" + r.Version + map[bool]string{true: " true", false: " false"}[r.Namespaced]
		} else if !strings.Contains(err.Error(), "write it as kubectl does") {
			t.Errorf("%q: %v", name, err)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestVersionsAndEventsOfTwoGroupsAreEquivalent(t *testing.T) {
	set := ofFiles(t)
	found := set.OfKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "CronTab"})
	if want := (schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "crontabs"}); found == nil || !slices.Equal(found.Equivalents, []schema.GroupVersionResource{want}) {
		t.Errorf("of crontabs: %+v", found)
	}
	events := set.OfKind(schema.GroupVersionKind{Version: "v1", Kind: "Event"})
	if want := (schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}); events == nil || !slices.Contains(events.Equivalents, want) {
		t.Errorf("of events: %+v", events)
	}
	if set.OfKind(schema.GroupVersionKind{Group: "example.com", Version: "v0", Kind: "CronTab"}) != nil {
		t.Error("a version that is not served is known")
	}
}

func TestRulesOverFilesKnowTheResourcesOfKubernetesOnly(t *testing.T) {
	known := ofFiles(t).ForLint()
	if known.Complete || !slices.Contains(known.ByGroup["apps"], "deployments") || known.ByGroup["example.com"] != nil {
		t.Errorf("complete %t, %v", known.Complete, known.ByGroup["example.com"])
	}
}
