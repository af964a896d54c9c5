// SPDX-License-Identifier: Apache-2.0

package podtest

import (
	"context"
	"slices"
	"testing"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Connecting returns a PodDefault that selects Secrets.
func Connecting(t testing.TB) *kubeflowv1alpha1.PodDefault {
	return PodDefaults(t, []byte(`
metadata: {name: connections}
spec:
  selector: {}
  labels: {added: "true"}
  envFromSecretSelector: {matchLabels: {connection: "true"}}
`))[0]
}

// ChosenFrom returns what a source selects for a pod without labels.
func ChosenFrom(ctx context.Context, source match.Source) ([]*plan.Plan, error) {
	b := meta.NewBudget(ctx)
	m := match.NewMatcher(Namespace, &meta.Metadata{}, false, &b)
	chosen, err := m.BySent(source)
	return chosen.Objects, err
}

// EnvFromOf returns the Secrets that a pod gets, and the problem of the object.
func EnvFromOf(t testing.TB, source match.Source) (keys []string, problem error) {
	t.Helper()
	selected, err := ChosenFrom(t.Context(), source)
	if err != nil || len(selected) != 1 {
		t.Fatalf("%d objects, %v", len(selected), err)
	}
	for _, w := range selected[0].EnvFrom {
		keys = append(keys, w.Key)
	}
	return keys, selected[0].Problem()
}

// ExpectEnvFrom checks which Secrets a pod gets.
func ExpectEnvFrom(t testing.TB, source match.Source, want ...string) {
	t.Helper()
	keys, problem := EnvFromOf(t, source)
	if problem != nil || !slices.Equal(keys, want) {
		t.Errorf("got %q, %v, want %q", keys, problem, want)
	}
}
