// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

func TestSecretsComeAndGo(t *testing.T) {
	index := indexWith(podtest.Connecting(t))
	podtest.ExpectEnvFrom(t, index)
	set := labels.Set{"connection": "true"}
	index.SetSecret(podtest.Namespace, "b", set)
	index.SetSecret(podtest.Namespace, "a", set)
	index.SetSecret("team-b", "other", set)
	index.SetSecret(podtest.Namespace, "unrelated", nil)
	podtest.ExpectEnvFrom(t, index, "secret a, optional", "secret b, optional")
	index.SetSecret(podtest.Namespace, "a", labels.Set{"connection": "false"})
	podtest.ExpectEnvFrom(t, index, "secret b, optional")
	index.secrets.delete(podtest.Namespace, "b")
	podtest.ExpectEnvFrom(t, index)
	index.secrets.delete(podtest.Namespace, "a")
	index.secrets.delete(podtest.Namespace, "unrelated")
	if len(index.secrets.namespaces) != 1 {
		t.Errorf("%d namespaces are cached, want that of the other team", len(index.secrets.namespaces))
	}
}

func TestFormerObjectsAreNotCached(t *testing.T) {
	index := indexWith(podtest.Connecting(t))
	index.SetSecret(podtest.Namespace, "a", labels.Set{"connection": "true"})
	for range 3 {
		index.Set(plan.Compile(podtest.Connecting(t)))
		podtest.ExpectEnvFrom(t, index, "secret a, optional")
	}
	if n := len(index.secrets.namespaces[podtest.Namespace].objects); n != 1 {
		t.Errorf("%d objects are cached for one", n)
	}
	index.Delete(podtest.Namespace, "connections")
	if n := len(index.secrets.namespaces[podtest.Namespace].objects); n != 0 {
		t.Errorf("%d objects are cached for none", n)
	}
	index.DeleteNamespace(podtest.Namespace)
	if index.secrets.namespaces[podtest.Namespace] == nil {
		t.Error("a Secret that is not gone yet was forgotten with its namespace")
	}
}

// TestTheStableRevisionMaySelectSecrets during a rollout, too, while the current one does
// not.
func TestTheStableRevisionMaySelectSecrets(t *testing.T) {
	const selects = "selector: {}, envFromSecretSelector: {matchLabels: {connection: 'true'}}"
	index := NewIndex()
	w := &Watcher{plans: index.plans}
	index.SetSecret(podtest.Namespace, "a", labels.Set{"connection": "true"})
	for range 3 {
		c := podtest.StagedFrom(t, selects, podtest.CurrentSpec, "{steps: [{percent: 0}]}", 1).Compile()
		index.Set(c)
		podtest.ExpectEnvFrom(t, index, "secret a, optional")
		if err := w.Unconnected(c); err != nil {
			t.Error(err)
		}
	}
	if n := len(index.secrets.namespaces[podtest.Namespace].objects); n != 1 {
		t.Errorf("%d objects are cached for one", n)
	}
	index.secrets.unknown = func() (problem, fault error) { return errConnectionsOff, nil }
	c := w.All(podtest.Namespace)[0]
	stable, _ := c.RolledOut()
	if err := w.Unconnected(c); !errors.Is(err, errConnectionsOff) || !strings.HasPrefix(err.Error(), "its stable revision "+stable.Revision()+" is left out: ") {
		t.Errorf("got %v", err)
	}
	index.Set(podtest.StagedFrom(t, selects, podtest.CurrentSpec, "null", 0).Compile())
	if err := w.Unconnected(w.All(podtest.Namespace)[0]); err != nil {
		t.Errorf("without a rollout: %v", err)
	}
}

func TestWhyASelectionOfSecretsIsLeftOutOrWaits(t *testing.T) {
	pd := podtest.Connecting(t)
	for name, unknown := range map[string]struct{ problem, fault error }{
		"the server does not read Secrets": {problem: errConnectionsOff},
		"they are not read yet":            {fault: errors.New("secrets are not read yet")},
	} {
		t.Run(name, func(t *testing.T) {
			index := indexWith(pd)
			index.secrets.unknown = func() (problem, fault error) { return unknown.problem, unknown.fault }
			selected, err := podtest.ChosenFrom(t.Context(), index)
			if unknown.fault != nil {
				if !errors.Is(err, unknown.fault) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || len(selected) != 1 || !errors.Is(selected[0].Problem(), unknown.problem) {
				t.Errorf("got %v, %v", selected, err)
			}
			other := indexWith(podtest.PodDefaults(t, []byte("metadata: {name: other}\nspec: {selector: {}, env: [{name: A}]}"))...)
			other.secrets.unknown = index.secrets.unknown
			if selected, err := podtest.ChosenFrom(t.Context(), other); err != nil || selected[0].Problem() != nil {
				t.Errorf("an object without such selectors: %v, %v", selected, err)
			}
		})
	}
}

func TestNewerSecretsReplaceThoseOfTheWatch(t *testing.T) {
	index := indexWith(podtest.Connecting(t))
	index.SetSecret(podtest.Namespace, "old", labels.Set{"connection": "true"})
	fresh := plan.Secrets{"new": labels.Set{"connection": "true"}}
	if index.secrets.same(podtest.Namespace, fresh) || !index.secrets.same(podtest.Namespace, plan.Secrets{"old": labels.Set{"connection": "true"}}) {
		t.Error("Secrets are compared by something else than names and labels")
	}
	podtest.ExpectEnvFrom(t, correct(index.plans, []correction{{namespace: podtest.Namespace, secrets: fresh}}), "secret new, optional")
	podtest.ExpectEnvFrom(t, correct(index.plans, []correction{{title: "PodDefault " + podtest.Namespace + "/connections", object: plan.Compile(podtest.Connecting(t))}}), "secret old, optional")
	podtest.ExpectEnvFrom(t, index, "secret old, optional")
}

func TestSelectionsAndSecretsMayChangeAtTheSameTime(t *testing.T) {
	index := indexWith(podtest.Connecting(t))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		for i := range 200 {
			index.SetSecret(podtest.Namespace, fmt.Sprint("s-", i%50), labels.Set{"connection": fmt.Sprint(i%3 == 0)})
			index.Set(plan.Compile(podtest.Connecting(t)))
		}
	})
	for range 3 {
		group.Go(func() {
			for ctx.Err() == nil {
				if selected, err := podtest.ChosenFrom(context.Background(), index); err != nil || len(selected) != 1 || selected[0].Problem() != nil {
					t.Errorf("got %v, %v", selected, err)
					return
				}
			}
		})
	}
	group.Wait()
}
