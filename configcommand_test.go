// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func config(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := hatter(t).Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SetArgs(append([]string{"config"}, args...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestConfigPrintsFlagsAndDefaults(t *testing.T) {
	out, err := config(t, "--service", "shop/hatter", "--failure-policy", "Ignore", "--controllers", "-hats,*")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"service: shop/hatter\n", "failure-policy: Ignore\n", "secure-port: 9443\n", "controllers:\n- -hats\n- '*'\n", "leader-elect: true\n", "log-level: info\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing of %q in\n%s", want, out)
		}
	}
}

func TestConfigReportsEveryProblem(t *testing.T) {
	out, err := config(t, "--failure-policy", "Maybe", "--log-level", "loud", "--tls-min-version", "1.2")
	if err == nil || out != "" {
		t.Fatalf("got %v and\n%s", err, out)
	}
	for _, want := range []string{"--service: registration.service: Required value: set it or url", "--failure-policy: registration.failurePolicy: ", "--log-level: log.level: ", `"1.2"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in: %v", want, err)
		}
	}
}

// Each flag but those of cobra belongs to a group, and a group is there once.
func TestHelpHasFlagsInGroups(t *testing.T) {
	command := hatter(t).Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--help"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var titles []string
	for line := range strings.Lines(out.String()) {
		if title, ok := strings.CutSuffix(line, ":\n"); ok && !strings.HasPrefix(line, " ") {
			titles = append(titles, title)
		}
	}
	const want = "Usage, Commands, API server, Webhooks, Certificate, Leader election, Callers, Addresses, TLS, timeouts and limits, Log, Flags"
	if got := strings.Join(titles, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, rest, _ := strings.Cut(out.String(), "\nFlags:\n")
	for line := range strings.Lines(rest) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && !strings.Contains(line, "--help") && !strings.Contains(line, "--version") {
			t.Errorf("%q belongs to no group", name)
		}
	}
}
