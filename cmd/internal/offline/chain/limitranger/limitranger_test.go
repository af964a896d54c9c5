// SPDX-License-Identifier: Apache-2.0

package limitranger_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/limitranger"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The API server has no order of LimitRanges: what depends on it is not known.
func TestLimitRangesThatGiveOneResourceDifferentLimitsAreAmbiguous(t *testing.T) {
	for name, c := range map[string]struct {
		pod, limits string
		want        bool
	}{
		"another limit":                        {"{name: c}", "{default: {memory: 2Gi}}", true},
		"the same limit in another unit":       {"{name: c}", "{default: {memory: 1024Mi}}", false},
		"a limit of something else":            {"{name: c}", "{default: {cpu: 1}}", false},
		"another limit of a pod that has both": {"{name: c, resources: {limits: {memory: 1Gi}, requests: {memory: 1Gi}}}", "{default: {memory: 2Gi}}", false},
	} {
		pod := read[corev1.Pod](t, "{spec: {containers: ["+c.pod+"]}}")
		all := []*corev1.LimitRange{read[corev1.LimitRange](t, "{metadata: {name: a}, spec: {limits: [{type: Container, default: {memory: 1Gi}}]}}"), {}}
		item := read[corev1.LimitRangeItem](t, c.limits)
		item.Type = corev1.LimitTypeContainer
		all[1].Spec.Limits = []corev1.LimitRangeItem{*item}
		for _, limits := range all {
			limitranger.Default(limits)
		}
		got, annotation := limitranger.Set(pod, all)
		if got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if want := name == "a limit of something else"; annotation != want { // it says which came last
			t.Errorf("%s: the annotation: %t", name, annotation)
		}
		limit := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
		if limit.String() != "1Gi" {
			t.Errorf("%s: %s", name, limit.String())
		}
	}
}
