// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

func connecting(t testing.TB) *kubeflowv1alpha1.PodDefault {
	return parsePodDefaults(t, []byte(`
metadata: {name: connections}
spec:
  selector: {}
  labels: {added: "true"}
  envFromSecretSelector: {matchLabels: {connection: "true"}}
`))[0]
}

func chosenFrom(ctx context.Context, source Source) ([]*Compiled, error) {
	b := newBounds(ctx)
	m := newMatcher(testNamespace, &metadata{}, false, &b)
	chosen, err := m.bySent(source)
	return chosen.objects, err
}

// envFromOf returns the Secrets that a pod gets, and the problem of the object.
func envFromOf(t testing.TB, source Source) (keys []string, problem error) {
	t.Helper()
	selected, err := chosenFrom(t.Context(), source)
	if err != nil || len(selected) != 1 {
		t.Fatalf("%d objects, %v", len(selected), err)
	}
	for _, w := range selected[0].envFrom {
		keys = append(keys, w.key)
	}
	return keys, selected[0].problem
}

func expectEnvFrom(t testing.TB, source Source, want ...string) {
	t.Helper()
	keys, problem := envFromOf(t, source)
	if problem != nil || !slices.Equal(keys, want) {
		t.Errorf("got %q, %v, want %q", keys, problem, want)
	}
}

func TestSecretsComeAndGo(t *testing.T) {
	index := indexWith(connecting(t))
	expectEnvFrom(t, index)
	set := labels.Set{"connection": "true"}
	index.SetSecret(testNamespace, "b", set)
	index.SetSecret(testNamespace, "a", set)
	index.SetSecret("team-b", "other", set)
	index.SetSecret(testNamespace, "unrelated", nil)
	expectEnvFrom(t, index, "secret a, optional", "secret b, optional")
	index.SetSecret(testNamespace, "a", labels.Set{"connection": "false"})
	expectEnvFrom(t, index, "secret b, optional")
	index.secrets.delete(testNamespace, "b")
	expectEnvFrom(t, index)
	index.secrets.delete(testNamespace, "a")
	index.secrets.delete(testNamespace, "unrelated")
	if len(index.secrets.namespaces) != 1 {
		t.Errorf("%d namespaces are cached, want that of the other team", len(index.secrets.namespaces))
	}
}

func TestFormerObjectsAreNotCached(t *testing.T) {
	index := indexWith(connecting(t))
	index.SetSecret(testNamespace, "a", labels.Set{"connection": "true"})
	for range 3 {
		index.Set(Compile(connecting(t)))
		expectEnvFrom(t, index, "secret a, optional")
	}
	if n := len(index.secrets.namespaces[testNamespace].objects); n != 1 {
		t.Errorf("%d objects are cached for one", n)
	}
	index.Delete(testNamespace, "connections")
	if n := len(index.secrets.namespaces[testNamespace].objects); n != 0 {
		t.Errorf("%d objects are cached for none", n)
	}
	index.DeleteNamespace(testNamespace)
	if index.secrets.namespaces[testNamespace] == nil {
		t.Error("a Secret that is not gone yet was forgotten with its namespace")
	}
}

// TestTheStableRevisionMaySelectSecrets during a rollout, too, while the current one does
// not.
func TestTheStableRevisionMaySelectSecrets(t *testing.T) {
	const selects = "selector: {}, envFromSecretSelector: {matchLabels: {connection: 'true'}}"
	w := newWatcher(slog.New(slog.DiscardHandler))
	w.index.SetSecret(testNamespace, "a", labels.Set{"connection": "true"})
	for range 3 {
		c := stagedFrom(t, selects, currentSpec, "{steps: [{percent: 0}]}", 1).compile()
		w.index.Set(c)
		expectEnvFrom(t, w.index, "secret a, optional")
		if err := w.Unconnected(c); err != nil {
			t.Error(err)
		}
	}
	if n := len(w.index.secrets.namespaces[testNamespace].objects); n != 1 {
		t.Errorf("%d objects are cached for one", n)
	}
	w.index.secrets.unknown = func() (problem, fault error) { return errConnectionsOff, nil }
	c := w.All(testNamespace)[0]
	stable, _ := c.RolledOut()
	if err := w.Unconnected(c); !errors.Is(err, errConnectionsOff) || !strings.HasPrefix(err.Error(), "its stable revision "+stable.Revision()+" is left out: ") {
		t.Errorf("got %v", err)
	}
	w.index.Set(stagedFrom(t, selects, currentSpec, "null", 0).compile())
	if err := w.Unconnected(w.All(testNamespace)[0]); err != nil {
		t.Errorf("without a rollout: %v", err)
	}
}

func TestAnObjectThatSelectsTooManySecretsIsLeftOut(t *testing.T) {
	index := indexOf(connecting(t))
	for i := range maxConnections {
		index.SetSecret(testNamespace, fmt.Sprintf("s-%03d", i), labels.Set{"connection": "true"})
	}
	if keys, problem := envFromOf(t, index); problem != nil || len(keys) != maxConnections {
		t.Errorf("got %d, %v", len(keys), problem)
	}
	index.SetSecret(testNamespace, "one-more", labels.Set{"connection": "true"})
	_, problem := envFromOf(t, index)
	if problem == nil || problem.Error() != "spec.envFromSecretSelector: Too many: 101: must have at most 100 items" {
		t.Errorf("got %v", problem)
	}
	resp := handleFrom(t, []byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`), index)
	if !resp.Allowed || len(resp.Warnings) != 1 || !strings.Contains(resp.Warnings[0], "was not applied: spec.envFromSecretSelector: Too many") {
		t.Errorf("got %+v", resp)
	}
}

func TestWhyASelectionOfSecretsIsLeftOutOrWaits(t *testing.T) {
	pd := connecting(t)
	for name, unknown := range map[string]struct{ problem, fault error }{
		"the server does not read Secrets": {problem: errConnectionsOff},
		"they are not read yet":            {fault: errors.New("secrets are not read yet")},
	} {
		t.Run(name, func(t *testing.T) {
			index := indexWith(pd)
			index.secrets.unknown = func() (problem, fault error) { return unknown.problem, unknown.fault }
			selected, err := chosenFrom(t.Context(), index)
			if unknown.fault != nil {
				if !errors.Is(err, unknown.fault) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || len(selected) != 1 || !errors.Is(selected[0].problem, unknown.problem) {
				t.Errorf("got %v, %v", selected, err)
			}
			other := indexWith(parsePodDefaults(t, []byte("metadata: {name: other}\nspec: {selector: {}, env: [{name: A}]}"))...)
			other.secrets.unknown = index.secrets.unknown
			if selected, err := chosenFrom(t.Context(), other); err != nil || selected[0].problem != nil {
				t.Errorf("an object without such selectors: %v, %v", selected, err)
			}
		})
	}
}

func TestNewerSecretsReplaceThoseOfTheWatch(t *testing.T) {
	index := indexWith(connecting(t))
	index.SetSecret(testNamespace, "old", labels.Set{"connection": "true"})
	fresh := secrets{"new": labels.Set{"connection": "true"}}
	if index.secrets.same(testNamespace, fresh) || !index.secrets.same(testNamespace, secrets{"old": labels.Set{"connection": "true"}}) {
		t.Error("Secrets are compared by something else than names and labels")
	}
	expectEnvFrom(t, correct(index, []correction{{namespace: testNamespace, secrets: fresh}}), "secret new, optional")
	expectEnvFrom(t, correct(index, []correction{{title: "PodDefault " + testNamespace + "/connections", object: Compile(connecting(t))}}), "secret old, optional")
	expectEnvFrom(t, index, "secret old, optional")
}

func TestSelectionsAndSecretsMayChangeAtTheSameTime(t *testing.T) {
	index := indexWith(connecting(t))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		for i := range 200 {
			index.SetSecret(testNamespace, fmt.Sprint("s-", i%50), labels.Set{"connection": fmt.Sprint(i%3 == 0)})
			index.Set(Compile(connecting(t)))
		}
	})
	for range 3 {
		group.Go(func() {
			for ctx.Err() == nil {
				if selected, err := chosenFrom(context.Background(), index); err != nil || len(selected) != 1 || selected[0].problem != nil {
					t.Errorf("got %v, %v", selected, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestVolumesOfSecretsHaveValidNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "a.b", "a-b", strings.Repeat("x", 52), strings.Repeat("x", 53), strings.Repeat("x", 253)} {
		volume := volumeOfSecret(name)
		if problems := validation.IsDNS1123Label(volume); len(problems) > 0 || seen[volume] != "" {
			t.Errorf("%s: volume %s, that of %q: %v", name, volume, seen[volume], problems)
		}
		seen[volume] = name
	}
}

func TestCheckOfSelectorsOfSecrets(t *testing.T) {
	for spec, want := range map[string]string{
		`envFromSecretSelector: {matchLabels: {"a b": c}}`:                                            "spec.envFromSecretSelector.matchLabels",
		`envFromSecretSelector: {matchExpressions: [{key: a, operator: Like}]}`:                       "spec.envFromSecretSelector.matchExpressions[0].operator",
		`volumesFromSecretSelector: {}`:                                                               "spec.secretsMountPath",
		`secretsMountPath: /a`:                                                                        "spec.secretsMountPath",
		`{volumesFromSecretSelector: {}, secretsMountPath: a}`:                                        "spec.secretsMountPath",
		`{volumesFromSecretSelector: {matchLabels: {a: "b c"}}, secretsMountPath: /a}`:                "spec.volumesFromSecretSelector.matchLabels",
		`{envFromSecretSelector: {}, volumesFromSecretSelector: {}, secretsMountPath: /a}`:            "",
		`{envFromSecretSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}, env: []}`: "",
	} {
		errs, _ := validate.Spec(parseSpec(t, spec), field.NewPath("spec"))
		if len(errs) != min(1, len(want)) || len(errs) == 1 && errs[0].Field != want {
			t.Errorf("%s: %v, want one error at %q", spec, errs, want)
		}
	}
}

func TestDataConnectionsAreALabelSelector(t *testing.T) {
	for selector, valid := range map[string]bool{"": true, "connection": true, "a=b,c notin (d)": true, "a b": false, "=": false} {
		settings := DefaultSettings()
		settings.DataConnections = selector
		if err := settings.Validate(); (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "dataConnections") {
			t.Errorf("%q: %v", selector, err)
		}
	}
}

func TestTheStableRevisionOfARolloutSelectsItsOwnSecrets(t *testing.T) {
	pd := connecting(t)
	pd.UID, pd.Generation = "1", 2
	stable := pd.Spec.DeepCopy()
	stable.EnvFromSecretSelector.MatchLabels["connection"] = "before"
	pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{}}}
	index := stagedIndex(&stagedDefault{PodDefault: pd, stable: Meaning(stable)})
	index.SetSecret(testNamespace, "old", labels.Set{"connection": "before"})
	index.SetSecret(testNamespace, "new", labels.Set{"connection": "true"})
	expectEnvFrom(t, index, "secret old, optional")
}
