// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func list(expressions ...string) (out []admissionregistrationv1.MatchCondition) {
	for _, expression := range expressions {
		out = append(out, admissionregistrationv1.MatchCondition{Name: "c", Expression: expression})
	}
	return out
}

func TestAConditionExcludesPodsForWhichItIsFalse(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Labels: map[string]string{"batch": "true"}}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main"}}}}
	for name, tc := range map[string]struct {
		conditions []string
		excluded   bool
	}{
		"a label":                        {[]string{"!('batch' in object.metadata.labels)"}, true},
		"a field of the spec":            {[]string{"object.spec.containers.exists(c, c.name == 'other')"}, true},
		"the namespace and operation":    {[]string{"request.namespace == 'a' && request.operation == 'CREATE'"}, false},
		"true and false":                 {[]string{"true", "false"}, true},
		"one that fails":                 {[]string{"object.spec.none == 1"}, false},
		"one that fails and a false one": {[]string{"object.spec.none == 1", "false"}, true},
		"a right":                        {[]string{"authorizer.group('').resource('pods').check('create').allowed()"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := new(Latest).Of(list(tc.conditions...)).Excludes(pod); got != tc.excluded {
				t.Errorf("excluded: %t", got)
			}
		})
	}
}

func TestASetStaysTheSameWhileTheListDoes(t *testing.T) {
	var latest Latest
	one := latest.Of(list("true"))
	if latest.Of(list("true")) != one || latest.Of(list("false")) == one || latest.Of(nil) != nil {
		t.Error("it is another one, or none")
	}
}

func BenchmarkExcludes(b *testing.B) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Labels: map[string]string{"app": "x"}}, Spec: corev1.PodSpec{NodeName: "n"}}
	for range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "main", Image: "i", Env: make([]corev1.EnvVar, 20)})
	}
	set := new(Latest).Of(list("!has(object.metadata.labels) || !('batch' in object.metadata.labels)"))
	b.ReportAllocs()
	for b.Loop() {
		set.Excludes(pod)
	}
}
