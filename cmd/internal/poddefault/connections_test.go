// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

func TestAnObjectThatSelectsTooManySecretsIsLeftOut(t *testing.T) {
	index := indexOf(podtest.Connecting(t))
	for i := range plan.MaxConnections {
		index.SetSecret(podtest.Namespace, fmt.Sprintf("s-%03d", i), labels.Set{"connection": "true"})
	}
	if keys, problem := podtest.EnvFromOf(t, index); problem != nil || len(keys) != plan.MaxConnections {
		t.Errorf("got %d, %v", len(keys), problem)
	}
	index.SetSecret(podtest.Namespace, "one-more", labels.Set{"connection": "true"})
	_, problem := podtest.EnvFromOf(t, index)
	if problem == nil || problem.Error() != "spec.envFromSecretSelector: Too many: 101: must have at most 100 items" {
		t.Errorf("got %v", problem)
	}
	resp := handleFrom(t, []byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`), index)
	if !resp.Allowed || len(resp.Warnings) != 1 || !strings.Contains(resp.Warnings[0], "was not applied: spec.envFromSecretSelector: Too many") {
		t.Errorf("got %+v", resp)
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
	pd := podtest.Connecting(t)
	pd.UID, pd.Generation = "1", 2
	stable := pd.Spec.DeepCopy()
	stable.EnvFromSecretSelector.MatchLabels["connection"] = "before"
	pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{}}}
	index := stagedIndex(&podtest.StagedDefault{PodDefault: pd, Stable: plan.Meaning(stable)})
	index.SetSecret(podtest.Namespace, "old", labels.Set{"connection": "before"})
	index.SetSecret(podtest.Namespace, "new", labels.Set{"connection": "true"})
	podtest.ExpectEnvFrom(t, index, "secret old, optional")
}
