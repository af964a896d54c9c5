// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

type defaulter struct{}

func (defaulter) Default(_ context.Context, pod *corev1.Pod) error {
	pod.Name = "named"
	return nil
}

// self is a type of the API that defaults and validates itself.
type self struct{ corev1.Pod }

func (s *self) Default()                { s.Name = "self" }
func (s *self) ValidateDelete() error   { return errors.New(s.Name + " stays") }
func (s *self) ValidateCreate() []error { return nil }

type other struct{}

func TestMethodsOf(t *testing.T) {
	m, err := MethodsOf(reflect.ValueOf(defaulter{}))
	if err != nil || len(m.Operations()) != 0 {
		t.Fatalf("%v, %v", m.Operations(), err)
	}
	pod := &corev1.Pod{}
	if err := m.Mutate.OfOne()(t.Context(), pod); err != nil || pod.Name != "named" {
		t.Errorf("%q, %v", pod.Name, err)
	}
	if _, same := m.Object.(*corev1.Pod); !same {
		t.Errorf("it is for %T", m.Object)
	}

	if _, err := MethodsOf(reflect.ValueOf(&self{})); err == nil || !strings.Contains(err.Error(), "method ValidateCreate") {
		t.Errorf("another signature: %v", err)
	}
	if _, err := MethodsOf(reflect.ValueOf(other{})); !errors.Is(err, ErrNone) {
		t.Errorf("no methods: %v", err)
	}
}
