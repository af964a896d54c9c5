// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

func TestWhatIsGoneIsForgotten(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g := gone{now: func() time.Time { return at }, objects: map[string][]goneObject{}}
	object := func(namespace, name string) *plan.Plan {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"}}
		pd.Spec.Selector.MatchLabels = map[string]string{"old": "true"}
		pd.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
		return plan.Compile(pd)
	}
	for i := range maxGone + 10 {
		g.changed(object("team-a", fmt.Sprintf("pd-%04d", i)), nil)
	}
	texts := g.selected("team-a", nil, labels.Set{"old": "true"})
	if len(texts) != maxGone || slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, "pd-0000") }) {
		t.Errorf("%d are remembered", len(texts))
	}
	at = at.Add(KeptGone + time.Second)
	g.changed(object("team-b", "other"), nil)
	if len(g.objects) != 1 || len(g.objects["team-b"]) != 1 {
		t.Errorf("still there: %d namespaces", len(g.objects))
	}
}
