// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/lint"
)

const hooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: pods.example.com
  clientConfig: {url: "https://127.0.0.1:9443/pods"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods, pods/eviction]}]
  failurePolicy: Fail
  timeoutSeconds: 5
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {team: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {team: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
`

func TestTheChainOfFilesFollowsRulesAndNamespaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hooks.yaml")
	if err := os.WriteFile(path, []byte(hooks), 0o600); err != nil {
		t.Fatal(err)
	}
	admission, known, err := AdmissionOfFiles([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		resource string
		question Question
		out      bool
	}{
		"a namespace that is selected":     {"pods", Question{Operation: "CREATE", Namespace: "team-a"}, false},
		"a subresource":                    {"pods", Question{Operation: "CREATE", Namespace: "team-a", Subresource: "eviction"}, false},
		"a namespace that is not selected": {"pods", Question{Operation: "CREATE", Namespace: "team-b"}, true},
		"another operation":                {"pods", Question{Operation: "UPDATE", Namespace: "team-a"}, true},
		"another resource":                 {"services", Question{Operation: "CREATE", Namespace: "team-a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			resource, err := known.Find(tc.resource)
			if err != nil {
				t.Fatal(err)
			}
			chain, err := admission.Chain(t.Context(), resource, tc.question)
			if err != nil || len(chain.Chain) != 1 {
				t.Fatalf("%+v, %v", chain, err)
			}
			if got := chain.Chain[0].Answer == lint.Out; got != tc.out {
				t.Errorf("out: %t, because %s", got, chain.Chain[0].Why)
			}
			var text strings.Builder
			if err := chain.PrintText(&text, false); err != nil || strings.Contains(text.String(), "Nobody is asked.") != tc.out {
				t.Errorf("%v\n%s", err, text.String())
			}
		})
	}
	nodes, err := known.Find("nodes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admission.Chain(t.Context(), nodes, Question{Operation: "CREATE", Namespace: "team-a"}); err == nil || !strings.Contains(err.Error(), "in no namespace") {
		t.Errorf("a node in a namespace: %v", err)
	}
}
