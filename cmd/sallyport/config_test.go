// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const configHead = "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\n"

func TestAConfigurationReportsEveryProblemWithItsLine(t *testing.T) {
	path := file(t, "sallyport.yaml", configHead+`registration:
  service: {namespace: sallyport-system, name: webhooks}
  failurePolicy: fail
  timeoutSecond: 5
serving:
  idleTimeout: 10
  securePort: 70000
  drainMin: x
webhooks:
- name: imagepull
  settings:
    alwaysPull: true
    allowedRegistries: [quay.io, nginx]
    forbidLatests: true
- name: projectlimit
  failurePolicy: Ignoring
  timeoutSeconds: 60
  objectSelector: {matchExpressions: [{key: a, operator: Is}]}
  settings:
    limit: -1
    limits:
    - {user: a, limit: 1}
    - {user: a, limit: x}
- name: nope
- name: imagepull
- {name: servicetype, settings: [1]}
`)
	got := sallyport(t, "config", "check", path)
	got.wantError(t)
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(got.stderr, "sallyport: ")), "\n")
	for i, want := range []string{
		`:5: registration.failurePolicy: Unsupported value: "fail": supported values: "Fail", "Ignore"`, `:6: unknown field "registration.timeoutSecond": known are allowWedge,`,
		":8: serving.idleTimeout: ", ":9: serving.securePort: Invalid value: 70000", `:10: serving.drainMin: time: invalid duration "x"`,
		`:15: webhooks[0].settings.allowedRegistries[1]: Invalid value: "nginx": begin with the registry`,
		`:16: unknown field "webhooks[0].settings.forbidLatests": known are allowedRegistries,`,
		`:18: webhooks[1].failurePolicy: Unsupported value: "Ignoring"`, ":19: webhooks[1].timeoutSeconds: Invalid value: 60", ":20: webhooks[1].objectSelector: ",
		":22: webhooks[1].settings.limit: Invalid value: -1: it must not be negative", ":25: webhooks[1].settings.limits[1].limit: want a number, got a string",
		`:25: webhooks[1].settings.limits[1]: Invalid value: "a": has a limit already`,
		`:26: webhooks[2].name: Unsupported value: "nope"`, `:27: webhooks[3].name: Duplicate value: "imagepull"`,
		":28: webhooks[4].settings: want a mapping, got a sequence",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], path+want) {
			t.Errorf("mistake %d is not %q in\n%s", i, want, got.stderr)
		}
	}
	if len(lines) != 16 {
		t.Errorf("%d mistakes:\n%s", len(lines), got.stderr)
	}
	// serve reports the same problems and does not start.
	if serve := sallyport(t, "serve", "--kubeconfig", nowhere(t), "--config", path); serve.status != exitError || serve.stderr != got.stderr {
		t.Errorf("serve says\n%s", serve.stderr)
	}
}

func TestFilesThatAreNoConfigurations(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":           {"", "it holds 0 documents"},
		"two documents":     {configHead + "---\n" + configHead, "it holds 2 documents"},
		"a list":            {"- a\n", ":1: not a configuration but a sequence"},
		"another kind":      {"apiVersion: v1\nkind: Pod\n", ":1: want apiVersion: config.sallyport.io/v1alpha1 and kind: SallyportConfiguration"},
		"no kind":           {"log: {level: info}\n", "want apiVersion: config.sallyport.io/v1alpha1"},
		"no YAML":           {configHead + "log: [\n", "not YAML"},
		"a field twice":     {configHead + "log: {}\nlog: {}\n", "log"},
		"a section of text": {configHead + "log: info\n", ":3: log: want a mapping, got a string"},
		"a bad condition":   {configHead + "webhooks:\n- name: imagepull\n  matchConditions: [{name: a b, expression: 'true'}]\n", ":4: webhooks[0]: "},
		"no webhook left":   {configHead + "webhooks: [{name: poddefault, enabled: false}]\n", "enables none"},
	} {
		t.Run(name, func(t *testing.T) {
			sallyport(t, "config", "check", file(t, "sallyport.yaml", tc.text)).wantError(t, tc.want)
		})
	}
	sallyport(t, "config", "check", "not-there.yaml").wantError(t, "not-there.yaml")
	sallyport(t, "config", "check").wantError(t, "takes one file, but got 0")
	sallyport(t, "config", "print", "a", "b").wantError(t, "takes one file, but got 2")
}

func TestAGoodConfigurationIsGood(t *testing.T) {
	_, example, _ := strings.Cut(readTop(t, "docs", "configuration.md"), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if !strings.HasPrefix(example, configHead) {
		t.Error("docs/configuration.md shows no configuration")
	}
	sallyport(t, "config", "check", file(t, "example.yaml", example)).wantOK(t)
	path := file(t, "sallyport.yaml", configHead)
	sallyport(t, "config", "check", path).want(t, exitOK, path+" is valid\n", "")
}

func TestWhatIsPrintedCanBeReadAgain(t *testing.T) {
	for name, text := range map[string]string{
		"the defaults": "",
		"everything": `kubeconfig: /a
registration: {mode: None, service: {namespace: a, name: b}, name: hooks, excludedNamespaces: [], ownPods: "", failurePolicy: Ignore, timeoutSeconds: 7, reviewVersions: [v1], namespaceSelector: {matchLabels: {a: b}}}
certificate: {source: Files, certFile: c, privateKeyFile: d}
leaderElection: {leaderElect: false}
authentication: {privatePaths: Never}
serving: {drainMin: 1m30s, securePort: 1, http2: true, maxBodyBytes: 1000000}
log: {level: debug, verbosity: 2}
tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 100}
webhooks:
- {name: poddefault, settings: {meshContainers: []}}
- {name: imagepull, failurePolicy: Fail, timeoutSeconds: 3, matchConditions: [{name: a, expression: "true"}], settings: {alwaysPull: false, forbidLatest: true}}
- {name: servicetype, enabled: false, objectSelector: {matchLabels: {a: b}}, settings: {forbidden: [NodePort], exceptions: [{labels: {a: b}}]}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			printed := sallyport(t, "config", "print", file(t, "sallyport.yaml", configHead+text)).wantOK(t)
			again := sallyport(t, "config", "print", file(t, "printed.yaml", printed)).wantOK(t)
			if diff := cmp.Diff(printed, again); diff != "" {
				t.Errorf("(-first +second):\n%s", diff)
			}
			if text == "" {
				if diff := cmp.Diff(sallyport(t, "config", "print").wantOK(t), printed); diff != "" {
					t.Errorf("without a file (-want +got):\n%s", diff)
				}
				equal(t, "config.yaml", printed)
				return
			}
			// Every given value is present.
			var said, got map[string]any
			for into, text := range map[*map[string]any]string{&said: text, &got: printed} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			for key, value := range said {
				if section, ok := value.(map[string]any); ok {
					for field, value := range section {
						if diff := cmp.Diff(value, got[key].(map[string]any)[field]); diff != "" {
							t.Errorf("%s.%s: %s", key, field, diff)
						}
					}
				}
			}
			for _, want := range []string{"meshContainers: []", "alwaysPull: false", "expression: \"true\"", "- NodePort"} {
				if !strings.Contains(printed, want) {
					t.Errorf("%q is missing in\n%s", want, printed)
				}
			}
		})
	}
}

func TestFlagsCountBeforeTheFile(t *testing.T) {
	path := file(t, "sallyport.yaml", configHead+`registration: {service: {namespace: a, name: b}, name: hooks, failurePolicy: Ignore}
webhooks:
- {name: imagepull, timeoutSeconds: 3, failurePolicy: Fail, settings: {exemptNamespaces: [lab]}}
`)
	manifests := func(args ...string) string {
		return sallyport(t, append([]string{"manifests", "--part", "configurations", "--config", path}, args...)...).wantOK(t)
	}
	out := manifests()
	for _, want := range []string{"name: hooks", "name: imagepull.sallyport.io", "failurePolicy: Fail", "timeoutSeconds: 3", "- lab"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "poddefault") || strings.Contains(out, "Ignore") {
		t.Errorf("what the file does not enable, or the policy of the others:\n%s", out)
	}
	out = manifests("--webhooks", "servicetype,imagepull", "--failure-policy", "Ignore", "--configuration-name", "other")
	for _, want := range []string{"name: other", "name: servicetype.sallyport.io", "timeoutSeconds: 3"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "failurePolicy: Fail") {
		t.Errorf("the file counts before flags:\n%s", out)
	}
}

func TestReviewTakesSettingsFromTheFile(t *testing.T) {
	path := file(t, "sallyport.yaml", configHead+"webhooks: [{name: imagepull, settings: {forbidLatest: true}}]\n")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: app}]}\n"
	if got := sallyportWith(t, pod, "review", "-f", "-", "--config", path); got.status != exitDenied || !strings.Contains(got.stderr, "tag latest") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
	sallyportWith(t, pod, "review", "-f", "-", "--config", "not-there.yaml").wantError(t, "not-there.yaml")
}

func TestAWebhookIsWhereTheFileSays(t *testing.T) {
	path := file(t, "sallyport.yaml", configHead+`webhooks:
- {name: poddefault, path: /add-cred, reinvocationPolicy: Never, matchPolicy: Exact}
- {name: imagepull, path: /images, reinvocationPolicy: Never}
`)
	out := sallyport(t, "manifests", "--part", "rbac,configurations", "--config", path, "--url", "https://127.0.0.1:9443", "--authentication", "Delegated").wantOK(t)
	webhooks := map[string]string{}
	for _, part := range strings.Split(out, "\n- ")[1:] {
		for line := range strings.Lines(part) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "name: "); ok && strings.HasSuffix(name, ".sallyport.io") {
				webhooks[name] = part
			}
		}
	}
	for name, wants := range map[string][]string{
		"poddefault.sallyport.io":          {"/add-cred\n", "matchPolicy: Exact", "reinvocationPolicy: Never"},
		"excluded.poddefault.sallyport.io": {"/apply-poddefault/excluded\n", "matchPolicy: Exact", "reinvocationPolicy: Never"},
		"author.poddefault.sallyport.io":   {"/validate-poddefault\n", "matchPolicy: Equivalent"},
		"imagepull.sallyport.io":           {"/images\n", "matchPolicy: Equivalent", "reinvocationPolicy: Never"},
		"validate.imagepull.sallyport.io":  {"/validate-imagepull\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(webhooks[name], want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, webhooks[name])
			}
		}
	}
	if !strings.Contains(out, "- /add-cred\n") {
		t.Errorf("a caller has no right for the path:\n%s", out)
	}

	sallyport(t, "config", "check", file(t, "bad.yaml", configHead+`webhooks:
- {name: poddefault, path: "add cred"}
- {name: imagepull, path: /apply-poddefault, reinvocationPolicy: Always, matchPolicy: exact}
- {name: servicetype, reinvocationPolicy: Never}
`)).wantError(t, `:5: webhooks[1].reinvocationPolicy: Unsupported value: "Always": supported values: "Never", "IfNeeded"`, `:5: webhooks[1].matchPolicy: Unsupported value: "exact": supported values: "Exact", "Equivalent"`)
	for text, want := range map[string]string{
		`{name: poddefault, path: "add cred"}`:           `path: "add cred" must begin with a slash`,
		`{name: servicetype, reinvocationPolicy: Never}`: "reinvocationPolicy is for mutating webhooks",
	} {
		sallyport(t, "config", "check", file(t, "bad.yaml", configHead+"webhooks:\n- "+text+"\n")).wantError(t, ":4: webhooks[0]", want)
	}
}

// The chart validates its value config with the schema, and the chart's variants test that.
// This test checks that the schema has every field that config prints.
func TestTheSchemaKnowsEveryField(t *testing.T) {
	var schema, printed map[string]any
	for into, text := range map[*map[string]any]string{
		&schema: sallyport(t, "config", "schema").wantOK(t), &printed: sallyport(t, "config", "print").wantOK(t),
	} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	var walk func(path string, schema map[string]any, value any)
	walk = func(path string, schema map[string]any, value any) {
		switch value := value.(type) {
		case map[string]any:
			properties, _ := schema["properties"].(map[string]any)
			for field, below := range value {
				if next, ok := properties[field].(map[string]any); ok {
					walk(path+"."+field, next, below)
				} else if path != ".webhooks.settings" {
					t.Errorf("%s.%s is not in the schema", path, field)
				}
			}
		case []any:
			items, _ := schema["items"].(map[string]any)
			for _, below := range value {
				walk(path, items, below)
			}
		}
	}
	walk("", schema, printed)
	webhook := schema["properties"].(map[string]any)["webhooks"].(map[string]any)["items"].(map[string]any)
	settings := map[string]map[string]any{}
	for _, rule := range webhook["allOf"].([]any) {
		name := rule.(map[string]any)["if"].(map[string]any)["properties"].(map[string]any)["name"].(map[string]any)["const"].(string)
		settings[name] = rule.(map[string]any)["then"].(map[string]any)["properties"].(map[string]any)["settings"].(map[string]any)
	}
	for _, entry := range printed["webhooks"].([]any) {
		name := entry.(map[string]any)["name"].(string)
		walk(".webhooks."+name, settings[name], entry.(map[string]any)["settings"])
	}
}
