// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Values with the reported path: of an error, or of a warning behind "warning: ".
func TestWhatARolloutMayNotHave(t *testing.T) {
	steps := strings.Repeat("{percent: 1},", 21)
	for spec, want := range map[string]string{
		`rollout: {steps: [{percent: 10, holdSeconds: 60}, {percent: 50}]}`:                            "",
		`rollout: {steps: [{podSelector: {matchLabels: {a: b}}}, {percent: 10}], maxFailedPercent: 0}`: "",
		`rollout: {}`:                                   "rollout.steps",
		`rollout: {steps: [` + steps + `]}`:             "rollout.steps",
		`rollout: {steps: [{percent: 101}]}`:            "rollout.steps[0].percent",
		`rollout: {steps: [{percent: -1}]}`:             "rollout.steps[0].percent",
		`rollout: {steps: [{holdSeconds: -1}]}`:         "rollout.steps[0].holdSeconds",
		`rollout: {steps: [{holdSeconds: 1e12}]}`:       "rollout.steps[0].holdSeconds",
		`rollout: {steps: [{}], by: Node}`:              "rollout.by",
		`rollout: {steps: [{}], maxFailedPercent: 101}`: "rollout.maxFailedPercent",
		`rollout: {steps: [{}], promotion: {step: 1}}`:  "rollout.promotion.revision",
		`rollout: {steps: [{}], promotion: {revision: "0123456789abcdef0123456789abcdef", step: 0}}`: "rollout.promotion.step",
		`rollout: {steps: [{podSelector: {matchExpressions: [{key: a, operator: Near}]}}]}`:          "rollout.steps[0].podSelector.matchExpressions[0].operator",
		`rollout: {steps: [{namespaceSelector: {matchLabels: {"a b": c}}}]}`:                         "rollout.steps[0].namespaceSelector.matchLabels",
		`revisionHistoryLimit: -1`:                                                                   "revisionHistoryLimit",
		`rollout: {steps: [{}], abortedRevision: v2}`:                                                "rollout.abortedRevision",
		`rollout: {steps: [{}], promotion: {revision: web-2}}`:                                       "rollout.promotion.revision",
		`rollout: {steps: [{percent: 50, holdSeconds: 1}, {percent: 20, holdSeconds: 1}]}`:           "warning: spec.rollout.steps[1]",
		`rollout: {steps: [{holdSeconds: 1}, {podSelector: {matchLabels: {a: b}}, holdSeconds: 1}]}`: "warning: spec.rollout.steps[1]",
		`rollout: {steps: [{percent: 10}], abortedRevision: "0123456789abcdef0123456789abcdef", promotion: {revision: "0123456789abcdef0123456789abcdef"}}`: "rollout.promotion.revision",
		`rollout: {steps: [{}]}, env: [{name: A, value: "` + strings.Repeat("x", 1_000_000) + `"}]`:                                                         "",
		`rollout: {steps: [{}]}, env: [{name: A, value: "` + strings.Repeat("<", 300_000) + `"}]`:                                                           "rollout",
		`env: [{name: A, value: "` + strings.Repeat("<", 300_000) + `"}]`:                                                                                   "",
	} {
		out := &kubeflowv1alpha1.PodDefaultSpec{}
		if err := yaml.Unmarshal([]byte("{selector: {matchLabels: {use: 'true'}}, "+spec+"}"), out); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		errs, warnings := Spec(out, field.NewPath("spec"))
		var got []string
		for _, err := range errs {
			got = append(got, strings.TrimPrefix(err.Field, "spec."))
		}
		for _, warning := range warnings {
			at, _, _ := strings.Cut(warning, ": ")
			got = append(got, "warning: "+at)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q: %v", spec, got, want, errs)
		}
	}
}
