// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func TestTypicalPodDefaultsAreElevenAndTheFirstInjectsEnvVolumeAndMount(t *testing.T) {
	all, err := typicalPodDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 11 { // the number in the limits
		t.Errorf("got %d", len(all))
	}
	first := all[0].Spec
	if len(first.Env) != 1 || len(first.Volumes) != 1 || len(first.VolumeMounts) != 1 {
		t.Errorf("the first: %+v", first)
	}
}

func TestRecordedPodsSelectTheFirstPodDefaultOrNone(t *testing.T) {
	all, err := manyPodDefaults(1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			recorded, err := loadReview(r.name)
			if err != nil {
				t.Fatal(err)
			}
			var pod corev1.Pod
			if err := json.Unmarshal(recorded.object, &pod); err != nil {
				t.Fatal(err)
			}
			var want []string
			if strings.HasSuffix(r.name, "-selecting") {
				want = []string{all[0].Name}
			}
			if got := selectedBy(t, all, pod.Labels); !slices.Equal(got, want) {
				t.Errorf("selects %q, want %q", got, want)
			}
		})
	}
}

func selectedBy(t *testing.T, all []*v1alpha1.PodDefault, podLabels map[string]string) []string {
	t.Helper()
	var names []string
	for _, pd := range all {
		selector, err := metav1.LabelSelectorAsSelector(&pd.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(labels.Set(podLabels)) {
			names = append(names, pd.Name)
		}
	}
	return names
}

func TestManyPodDefaultsHaveNamesAndLabelsOfTheirOwn(t *testing.T) {
	const n = 10_000
	all, err := manyPodDefaults(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != n {
		t.Fatalf("got %d of %d", len(all), n)
	}
	names, keys := map[string]bool{}, map[string]bool{}
	for _, pd := range all {
		names[pd.Name] = true
		for key := range pd.Spec.Selector.MatchLabels {
			keys[key] = true
			if problems := validation.IsQualifiedName(key); problems != nil {
				t.Fatalf("label %q: %q", key, problems)
			}
		}
		data, err := json.Marshal(pd)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < 400 || len(data) > 1500 { // the API server adds its metadata
			t.Fatalf("%s has %d bytes, which is not typical", pd.Name, len(data))
		}
	}
	if len(names) != n || len(keys) != n {
		t.Errorf("%d names and %d labels for %d PodDefaults", len(names), len(keys), n)
	}
}
