// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// printer prints a test's report.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printer) Context() context.Context          { return context.Background() }

func ExampleRun() {
	var t printer // in a test: t *testing.T

	addZone := admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "zone"})
		return nil
	})
	sallyporttest.Run(t, addZone, sallyporttest.Case{
		Review: sallyporttest.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}),
	})
	// Output:
	// not idempotent, it changes its own result:
	// --- first pass
	// +++ second pass
	// @@ -6,4 +6,5 @@
	//    containers: null
	//    tolerations:
	//    - key: zone
	// +  - key: zone
	//  status: {}
}
