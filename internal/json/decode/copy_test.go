// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// stale has a DeepCopyObject that predates a field, or that shares memory.
type stale struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              staleSpec `json:"spec"`
}

type staleSpec struct {
	Name  string             `json:"name"`
	Tags  []string           `json:"tags"`
	Limit *int64             `json:"limit"`
	Of    map[string]*string `json:"of"`
	Cache []string           `json:"-"`
}

func (s *stale) whole() *stale {
	c := &stale{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy(), Spec: staleSpec{Name: s.Spec.Name, Tags: append([]string(nil), s.Spec.Tags...)}}
	if s.Spec.Limit != nil {
		limit := *s.Spec.Limit
		c.Spec.Limit = &limit
	}
	for key, value := range s.Spec.Of {
		if c.Spec.Of == nil {
			c.Spec.Of = map[string]*string{}
		}
		is := *value
		c.Spec.Of[key] = &is
	}
	return c
}

// how is the next DeepCopyObject: CopyProblem makes its own object.
var how func(s *stale) *stale

func (s *stale) DeepCopyObject() runtime.Object { return how(s) }

func TestCopyProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		copy func(s *stale) *stale
		want string
	}{
		"none":                      {(*stale).whole, ""},
		"a list that is not copied": {func(s *stale) *stale { c := s.whole(); c.Spec.Tags = nil; return c }, "does not copy .Spec.Tags"},
		"a list that is shared":     {func(s *stale) *stale { c := s.whole(); c.Spec.Tags = s.Spec.Tags; return c }, "shares .Spec.Tags"},
		"a pointer that is shared":  {func(s *stale) *stale { c := s.whole(); c.Spec.Limit = s.Spec.Limit; return c }, "shares .Spec.Limit"},
		"a value that is missing":   {func(s *stale) *stale { c := s.whole(); c.Spec.Name = ""; return c }, "does not copy .Spec.Name"},
		"a map that is shared":      {func(s *stale) *stale { c := s.whole(); c.Spec.Of = s.Spec.Of; return c }, "shares .Spec.Of"},
		"values of a map that are shared": {func(s *stale) *stale {
			c := s.whole()
			for key, value := range s.Spec.Of {
				c.Spec.Of[key] = value
			}
			return c
		}, "shares .Spec.Of"},
		"a panic": {func(*stale) *stale { panic("of no use") }, "panics"},
	} {
		t.Run(name, func(t *testing.T) {
			how = tc.copy
			if got := CopyProblem(&stale{}); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("says %q, want something of %q", got, tc.want)
			}
		})
	}
}

// Generated Kubernetes methods copy everything.
func TestTypesOfKubernetesHaveNoCopyProblem(t *testing.T) {
	var objects []runtime.Object
	for kind := range clientscheme.Scheme.AllKnownTypes() {
		if object, err := clientscheme.Scheme.New(kind); err == nil && kind.Version != runtime.APIVersionInternal {
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		if problem := CopyProblem(object); problem != "" {
			t.Errorf("%T: %s", object, problem)
		}
	}
}
