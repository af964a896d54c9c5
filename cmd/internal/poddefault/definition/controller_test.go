// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/internal/store"
)

// TestStatusAndMetricFollowTheDefinition: while it lacks fields, again after it was right, and until it is deleted.
func TestStatusAndMetricFollowTheDefinition(t *testing.T) {
	c, err := New(Options{Status: &Status{}, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	name := types.NamespacedName{Name: "poddefaults.kubeflow.org"}
	s := store.New(store.Kind[*apiextensionsv1.CustomResourceDefinition, *served]{Name: "definition", Example: &apiextensionsv1.CustomResourceDefinition{}, Keep: func(*apiextensionsv1.CustomResourceDefinition) *served { return nil }}, c.log)
	s.Handle(store.Handler[*served]{Changed: c.show})
	put := func(version string, missing ...string) func() {
		return func() { s.Set(&served{store.Identity{NamespacedName: name, ResourceVersion: version}, missing}) }
	}
	for _, step := range []struct {
		what   string
		do     func()
		detail bool
		series int
	}{
		{"all fields are there", put("1"), false, 1},
		{"one is missing", put("2", "spec.sidecars"), true, 1},
		{"another change of the definition", put("3", "spec.sidecars"), true, 1},
		{"it is right again", put("4"), false, 1},
		{"one is missing again", put("5", "spec.sidecars"), true, 1},
		{"the definition is deleted", func() { s.Delete(name) }, false, 0},
	} {
		step.do()
		if n := testutil.CollectAndCount(c.missing); n != step.series {
			t.Errorf("%s: %d series", step.what, n)
		}
		if described := strings.Contains(c.Status.Detail(), "spec.sidecars"); described != step.detail {
			t.Errorf("%s: the status says %q", step.what, c.Status.Detail())
		}
	}
}
