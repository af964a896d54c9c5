// SPDX-License-Identifier: Apache-2.0

package commands_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/commands"
)

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: shop}
data: {currency: EUR}
`

// run runs the command of an application that sets a label, and denies what has no data.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"))
	app, err := sallyport.New("shop", sallyport.WithWebhooks(
		admission.Mutating("team.shop.example.com", rules, admission.Mutate(func(_ context.Context, c *corev1.ConfigMap) error {
			c.Labels = map[string]string{"team": "sales"}
			return nil
		})),
		admission.Validating("data.shop.example.com", rules, admission.Validate(func(_ context.Context, c *corev1.ConfigMap) error {
			if len(c.Data) == 0 {
				return admission.Denyf("data: is empty")
			}
			return nil
		})),
	))
	if err != nil {
		t.Fatal(err)
	}
	cmd := app.Command()
	commands.AddTo(cmd, app)
	var out, notes bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

func TestReviewPrintsThePatchedObject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte(configMap), 0o600); err != nil {
		t.Fatal(err)
	}
	out, notes, err := run(t, "", "review", "-f", file, "-o", "yaml")
	if err != nil || !strings.Contains(out, "team: sales") || !strings.Contains(out, "currency: EUR") {
		t.Errorf("%v\n%s\n%s", err, out, notes)
	}
	out, notes, err = run(t, "", "review", "-f", file)
	if err != nil || !strings.Contains(out, "allowed, changed by team.shop.example.com") || !strings.Contains(out, "+    team: sales") {
		t.Errorf("%v\n%s\n%s", err, out, notes)
	}
	if out, _, err = run(t, "", "review", "-f", file, "-o", "yaml", "--only", "data.shop.example.com"); err != nil || strings.Contains(out, "sales") {
		t.Errorf("a webhook that was not chosen: %v\n%s", err, out)
	}
}

func TestReviewFailsIfAnObjectIsDeniedOrCannotBeReviewed(t *testing.T) {
	for name, tc := range map[string]struct{ stdin, says string }{
		"denied":           {strings.Replace(configMap, "currency: EUR", "", 1), "data: is empty"},
		"an unknown field": {configMap + "colour: red\n", "colour"},
		"nothing":          {"", "stdin holds no object"},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, err := run(t, tc.stdin, "review", "-f", "-")
			if err == nil || !strings.Contains(notes+err.Error(), tc.says) {
				t.Errorf("%v\n%s\n%s", err, out, notes)
			}
		})
	}
	if _, _, err := run(t, configMap, "review", "-f", "-", "--only", "none.shop.example.com", "-o", "yaml"); err == nil || !strings.Contains(err.Error(), "team.shop.example.com") {
		t.Errorf("a webhook that there is not: %v", err)
	}
}

// The exit statuses are those of the help, also for a command with children of others.
func TestExitStatusesAreThoseOfTheHelp(t *testing.T) {
	app, err := sallyport.New("shop", sallyport.WithWebhooks(
		admission.Validating("data.shop.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps")),
			admission.Validate(func(context.Context, *corev1.ConfigMap) error { return admission.Denyf("never") }))))
	if err != nil {
		t.Fatal(err)
	}
	const configuration = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks: [{name: short, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: "https://192.0.2.1/"}}]
`
	for name, tc := range map[string]struct {
		stdin  string
		args   []string
		status int
		says   string // on stderr
	}{
		"findings":           {configuration, []string{"lint", "-f", "-"}, 2, ""},
		"a denied object":    {configMap, []string{"review", "-f", "-"}, 3, ""},
		"nothing to examine": {"", []string{"lint", "-f", "-"}, 1, "Error: stdin holds no object"},
		"an unknown flag":    {"", []string{"lint", "--nothing"}, 1, "Error: unknown flag: --nothing"},
		"the version":        {"", []string{"--version"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := app.Command()
			commands.AddTo(cmd, app)
			var out, notes bytes.Buffer
			cmd.SetIn(strings.NewReader(tc.stdin))
			cmd.SetOut(&out)
			cmd.SetErr(&notes)
			cmd.SetArgs(tc.args)
			status := sallyport.Execute(cmd)
			if status != tc.status || !strings.Contains(notes.String(), tc.says) || strings.Contains(notes.String(), "exit status") {
				t.Errorf("status %d, want %d with %q:\n%s\n%s", status, tc.status, tc.says, &out, &notes)
			}
		})
	}
}

func TestLintReadsWhatManifestsPrints(t *testing.T) {
	printed, notes, err := run(t, "", "manifests", "--service", "shop-system/shop", "--part", "configurations,service,workload", "--image", "registry.example.com/shop:v1")
	if err != nil {
		t.Fatalf("%v\n%s", err, notes)
	}
	if out, notes, err := run(t, printed, "lint", "-f", "-", "--severity", "error"); err != nil {
		t.Errorf("errors in what is printed: %v\n%s\n%s", err, out, notes)
	}
	out, _, err := run(t, strings.ReplaceAll(printed, "sideEffects: None", "sideEffects: Unknown"), "lint", "-f", "-", "--severity", "error")
	if err == nil || !strings.Contains(out, "side-effects") {
		t.Errorf("no finding about side effects that the API server refuses: %v\n%s", err, out)
	}
}

func TestDoctorReportsEveryProblemInItsFlags(t *testing.T) {
	_, _, err := run(t, "", "doctor", "-o", "xml", "--service", "x", "--metrics-port", "0", "--configuration-name", "A b", "--window", "2h")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`--output "xml"`, "--service: registration.service.namespace: Required value", "--metrics-port 0", `--configuration-name "A b"`, "--window 2h"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in %v", want, err)
		}
	}
}
