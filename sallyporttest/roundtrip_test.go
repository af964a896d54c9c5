// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// failures keeps what a test is told.
type failures struct {
	testing.TB
	told []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

func TestRoundTripsNameWhatIsLost(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Settings"}
	scheme := runtime.NewScheme()
	for _, version := range []string{"v1", "v2"} {
		scheme.AddKnownTypeWithName(kind.WithVersion(version), &corev1.ConfigMap{})
	}
	forgets := false
	converter := conversion.Objects(scheme, kind, func(_ context.Context, src, dst runtime.Object) error {
		meta := dst.(*corev1.ConfigMap).TypeMeta
		src.(*corev1.ConfigMap).DeepCopyInto(dst.(*corev1.ConfigMap))
		dst.(*corev1.ConfigMap).TypeMeta = meta
		if forgets {
			dst.(*corev1.ConfigMap).Data = nil
		}
		return nil
	})
	told := func(options sallyporttest.RoundTripOptions) []string {
		f := &failures{TB: t}
		sallyporttest.RoundTrips(f, converter, options)
		return f.told
	}
	if got := told(sallyporttest.RoundTripOptions{Seed: 1}); len(got) > 0 {
		t.Errorf("nothing is lost, but %q", got)
	}
	forgets = true
	got := told(sallyporttest.RoundTripOptions{Seed: 1})
	if len(got) != 2 || !strings.Contains(got[0], "Settings.example.com from v1 to v2 and back, seed 1, object ") || !strings.Contains(got[0], "/data lost") {
		t.Errorf("got %q", got)
	}
	if got := told(sallyporttest.RoundTripOptions{Seed: 1, Lossy: map[string][]string{"v1": {"/data"}, "v2": {"/data"}}}); len(got) > 0 {
		t.Errorf("what may be lost is reported: %q", got)
	}
}
