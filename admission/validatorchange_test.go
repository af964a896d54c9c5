// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/admission"
)

func TestAValidatorThatChangesItsObjectIsInTheLog(t *testing.T) {
	read := func(_ context.Context, pod *corev1.Pod) error {
		_ = pod.DeepCopy()
		return nil
	}
	change := func(_ context.Context, pod *corev1.Pod) error {
		pod.Spec.NodeName = "s3cret"
		return nil
	}
	for name, tc := range map[string]struct {
		handler   admission.Handler
		operation admissionv1.Operation
		logged    bool
	}{
		"reads":          {admission.Validate(read), admissionv1.Create, false},
		"changes a copy": {admission.Validate(func(ctx context.Context, pod *corev1.Pod) error { return change(ctx, pod.DeepCopy()) }), admissionv1.Create, false},
		"changes":        {admission.Validate(change), admissionv1.Create, true},
		"changes, denies": {admission.Validate(func(ctx context.Context, pod *corev1.Pod) error {
			return errors.Join(change(ctx, pod), admission.Denyf("no"))
		}), admissionv1.Create, true},
		"on creation": {admission.ValidateEach(admission.Checks[*corev1.Pod]{Create: change}), admissionv1.Create, true},
		"on an update": {admission.ValidateEach(admission.Checks[*corev1.Pod]{
			Update: func(ctx context.Context, _, pod *corev1.Pod) error { return change(ctx, pod) },
		}), admissionv1.Update, true},
		"empties an empty map": {admission.Validate(func(_ context.Context, pod *corev1.Pod) error {
			pod.Annotations = map[string]string{}
			return nil
		}), admissionv1.Create, false},
		"changes without a type": {admission.Validate(func(_ context.Context, pod *unstructured.Unstructured) error {
			pod.SetNamespace("s3cret")
			return nil
		}), admissionv1.Create, true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			ctx := admission.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&log, nil)).With("webhook", "a.b.c"))
			if _, err := tc.handler.Handle(ctx, podRequest(tc.operation)); err != nil {
				t.Fatal(err)
			}
			got := log.String()
			if strings.Contains(got, "the validator changed its object") != tc.logged || strings.Contains(got, "s3cret") || tc.logged && !strings.Contains(got, "webhook=a.b.c") {
				t.Errorf("logged %q", got)
			}
		})
	}
}
