// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

func TestReviewsAreSentToWebhooksBeforeKubernetes137(t *testing.T) {
	const review = "{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, metadata: {name: x}, spec: {user: me}}"
	for _, kind := range []string{"Mutating", "Validating"} {
		text := strings.ReplaceAll(webhook(kind, "a.example.com", "  sideEffects: None\n"), "apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]", "apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']")
		objects, _, err := manifest.Parse("with.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for minor, want := range map[int]int{36: 1, 37: 0} {
			got, err := run(t, objects, review, func(r *chain.Run) {
				r.Request.Namespace, r.Release = "", release.Version{Minor: minor}
			}).Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Steps) != want {
				t.Errorf("%s, 1.%d: %d calls, want %d", kind, minor, len(got.Steps), want)
			}
		}
	}
}

func TestMatchConditionsAreUnknownForRequestsThatMatch(t *testing.T) {
	const conditions = "  sideEffects: None\n  matchConditions: [{name: uid, expression: \"object.metadata.uid != ''\"}]\n"
	for name, tc := range map[string]struct {
		more, from, to string
		want           bool
	}{
		"its rules match":                     {want: true},
		"its objectSelector does not":         {more: "  objectSelector: {matchLabels: {not: there}}\n"},
		"its namespaceSelector does not":      {more: "  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}\n"},
		"its rules name another resource":     {from: "resources: [pods]", to: "resources: [services]"},
		"its rules name another version":      {from: "apiVersions: [v1]", to: "apiVersions: [v2]"},
		"without rules, it matches no object": {from: "{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}", to: ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := webhook("Validating", "a.example.com", conditions+tc.more)
			if tc.from != "" {
				text = strings.ReplaceAll(text, tc.from, tc.to)
			}
			got, err := evaluate(t, team+text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if unknown := strings.Contains(strings.Join(got.Unknown, "\n"), "match conditions"); unknown != tc.want {
				t.Errorf("unknown: %q", got.Unknown)
			}
		})
	}
}
