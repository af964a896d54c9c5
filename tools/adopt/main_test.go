// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An application on the Kubernetes before the newest keeps all its versions, and gets nothing of the server.
func TestANewApplicationKeepsItsVersions(t *testing.T) {
	changed, err := adopt(top(t), "new@v0.24.1")
	if err != nil {
		t.Fatal(err)
	}
	if len(changed.upgraded) > 0 {
		t.Errorf("upgraded:\n%s", strings.Join(changed.upgraded, "\n"))
	}
	t.Logf("new: %s", strings.Join(changed.added, ", "))
	if len(changed.added) == 0 || len(changed.added) > 12 {
		t.Errorf("%d new modules: %s", len(changed.added), strings.Join(changed.added, ", "))
	}
}

func TestTheLibraryRequiresNothingOfTheServer(t *testing.T) {
	required, err := requirements("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{
		"github.com/a-h/templ", "github.com/chromedp/chromedp", "github.com/owenrumney/go-sarif/v3", "golang.org/x/perf", "k8s.io/component-base",
		"k8s.io/pod-security-admission", "github.com/google/cel-go", "k8s.io/apiserver", "k8s.io/cloud-provider", "google.golang.org/grpc",
	} {
		if version := required[module]; version != "" {
			t.Errorf("go.mod requires %s %s", module, version)
		}
	}
	// controller-runtime's responses have its types: another version changes those of applications.
	if version := required["gomodules.xyz/jsonpatch/v2"]; version != "v2.4.0" {
		t.Errorf("go.mod requires gomodules.xyz/jsonpatch/v2 %s; controller-runtime asks for v2.4.0", version)
	}
	if len(required) < 20 {
		t.Errorf("only %d requirements", len(required))
	}
}

func top(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestDefinitionsAreComparedFieldByField(t *testing.T) {
	const configuration = "kind: MutatingWebhookConfiguration\nwebhooks:\n- name: a\n  clientConfig: {service: {name: s, path: /a}}\n"
	webhooks := func(text string) []map[string]any {
		t.Helper()
		found, err := webhooksIn([]byte("kind: Service\n---\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := equalWebhooks(webhooks(configuration), webhooks(configuration+"  failurePolicy: Fail\n  namespaceSelector: {}\n  timeoutSeconds: 10\n")); err != nil {
		t.Errorf("what has the default differs: %v", err)
	}
	for field, text := range map[string]string{
		"objectSelector":     configuration + "  objectSelector: {matchLabels: {a: b}}\n",
		"failurePolicy":      configuration + "  failurePolicy: Ignore\n",
		"clientConfig":       strings.Replace(configuration, "path: /a", "path: /b", 1),
		"unheardOf":          configuration + "  unheardOf: 1\n",
		"reinvocationPolicy": strings.Replace(configuration, "Mutating", "Validating", 1),
	} {
		if err := equalWebhooks(webhooks(configuration), webhooks(text)); err == nil || !strings.Contains(err.Error(), "webhook a: "+field+" is defined as ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := equalWebhooks(nil, webhooks(configuration)); err == nil || !strings.Contains(err.Error(), "0 webhooks are defined, and 1 rendered") {
		t.Errorf("one is missing: %v", err)
	}
}

func TestFailedSpecsAreNamed(t *testing.T) {
	const output = "\x1b[38;5;9m[FAIL]\x1b[0m \x1b[0mWebhooks \x1b[38;5;9m\x1b[1m[It] should b\x1b[0m\n\n" +
		"  [FAIL] Webhooks [It] should a\n  [FAIL] Others [It] should b\n• [FAILED] [0.017 seconds]\n"
	if got := failed(output); !slices.Equal(got, []string{"should a", "should b"}) {
		t.Errorf("got %q", got)
	}
}
