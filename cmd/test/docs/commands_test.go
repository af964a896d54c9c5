// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/test/docs/programs"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestCommandsOnARealAPIServer does what the documents say on one API server: first what wants
// nothing installed, so that Sallyport is not installed and deleted in between, and then the
// rest, each in the order of the documents.
func TestCommandsOnARealAPIServer(t *testing.T) {
	w := newWorld(t)
	defer w.stop(t)
	var tested []block
	for _, guide := range guides(t) {
		for _, b := range blocks(t, guide) {
			if elsewhere[b.document] == "" {
				tested = append(tested, b)
			}
		}
	}
	ran := 0
	for _, first := range []bool{true, false} {
		for _, b := range tested {
			kind, rest := b.kind()
			if first != (kind == "run" && b.options(t).state == nothingInstalled) {
				continue
			}
			if kind == "run" {
				ran++
			}
			t.Run(strings.ReplaceAll(b.name(), "/", " "), func(t *testing.T) {
				switch {
				case b.shell() && kind == "run":
					w.run(t, b)
				case b.shell() && kind == "check":
					report(t, w.check(t, b.commands(), w.programs+"-others"))
				case kind == "flags":
					report(t, w.check(t, rest+" "+strings.ReplaceAll(comments.ReplaceAllString(b.text, ""), "\n", " "), ""))
				case b.language == "yaml":
					w.yaml(t, b)
				}
			})
		}
	}
	t.Run("what is wrong is found", w.wrongCommands)
	if ran == 0 {
		t.Error("no block is to be run")
	}
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, problem := range problems {
		t.Error(problem)
	}
}

// options are what stands behind "run:", with commas between them.
type options struct {
	state  string   // of the cluster before: "nothing installed", "continued", or as the chart installs it
	with   []string // "with FILE FILE": files of the world that are applied before
	as     string   // "as NAME": who runs kubectl
	status int      // "status N": of the last command
	since  int      // "since 1.N": the release of Kubernetes
}

func (b block) options(t *testing.T) options {
	t.Helper()
	o := options{state: installed}
	_, rest := b.kind()
	for _, option := range strings.Split(rest, ",") {
		option = strings.TrimSpace(option)
		key, value, _ := strings.Cut(option, " ")
		var err error
		switch {
		case option == "":
		case option == nothingInstalled || option == continued:
			o.state = option
		case key == "with":
			o.with = strings.Fields(value)
		case key == "as":
			o.as = value
		case key == "status":
			o.status, err = strconv.Atoi(value)
		case key == "since":
			o.since, err = strconv.Atoi(strings.TrimPrefix(value, "1."))
		default:
			t.Fatalf("%s: there is no option %q", b.name(), option)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// commands are the lines that a person types: in a console those behind a prompt.
func (b block) commands() string {
	if b.language != "console" {
		return b.text
	}
	var out strings.Builder
	for _, line := range strings.Split(b.text, "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			out.WriteString(command + "\n")
		}
	}
	return out.String()
}

// comments of a shell.
var comments = regexp.MustCompile(`(?m) +#.*$`)

// changes are commands after which what is installed may be another one, for good: a server
// that runs, or is started again, puts right what it has registered. A block that ends with a
// rollback has changed nothing for good.
var changes = regexp.MustCompile(`\b(helm (install|upgrade|uninstall)|sallyport uninstall|--image)\b| -k |delete custom`)

// reaches are commands that need the cluster.
var reaches = regexp.MustCompile(`\b(kubectl|helm|chain|doctor|certificates)\b|--cluster`)

func (w *world) run(t *testing.T, b block) {
	o := b.options(t)
	if minor := lab.KubernetesMinor(t); minor < o.since {
		t.Logf("Kubernetes 1.%d does not have it", minor)
		return
	}
	if reaches.MatchString(b.text) {
		w.be(t, o.state)
	}
	for _, file := range o.with {
		w.sh(t, "kubectl apply --server-side -f "+file)
	}
	w.readProblems(t) // those of before are none of this
	if changes.MatchString(b.text) && !strings.Contains(b.text, "helm rollback") {
		w.state = ""
	}
	out, status := w.shell(t, b.commands(), programs.AsVariable+"="+o.as)
	report(t, w.readProblems(t))
	if status != o.status {
		t.Errorf("status %d, want %d:\n%s\n%s", status, o.status, b.commands(), out)
	}
	if b.language == "console" {
		compareConsole(t, b, out)
	}
}

// compareConsole holds that a console shows what is printed, lines broken anywhere, and
// with a line … for what is left out.
func compareConsole(t *testing.T, b block, printed string) {
	t.Helper()
	var shown []string
	for _, line := range strings.Split(b.text, "\n") {
		if !strings.HasPrefix(line, "$ ") {
			shown = append(shown, line)
		}
	}
	rest := strings.Join(strings.Fields(printed), " ")
	for _, part := range strings.Split(strings.Join(shown, "\n"), "…") {
		part = strings.Join(strings.Fields(part), " ")
		i := strings.Index(rest, part)
		if i < 0 {
			t.Errorf("it does not print\n%s\nbut\n%s", part, printed)
			return
		}
		rest = rest[i+len(part):]
	}
}

// check has each program read its arguments, runs none, and returns what is wrong. The
// programs of a folder may be named besides.
func (w *world) check(t *testing.T, commands, besides string) []string {
	t.Helper()
	w.readProblems(t) // those of before are none of this
	out, status := w.shell(t, commands, programs.CheckVariable+"=1", "PATH="+w.programs+string(os.PathListSeparator)+besides)
	problems := w.readProblems(t)
	if status != 0 {
		problems = append(problems, fmt.Sprintf("status %d:\n%s\n%s", status, commands, out))
	}
	return problems
}

// wrongCommands has to find what no document may say.
func (w *world) wrongCommands(t *testing.T) {
	for _, commands := range []string{
		"kubectl get pods --no-such-flag",
		"kubectl rollout nothing",
		"kubectl get pods | sallyport serve --no-such-flag",
		"sallyport certificates nothing",
		"kubectl sallyport nothing",
		"sallyport serve --secure-port many",
		"helm install --no-such-flag",
		"make nothing",
		"make bench BENCHES=-json",
		`make faults FAULTS="-no-such-flag"`,
		"go run ./examples/nothing",
		"no-such-program",
	} {
		if problems := w.check(t, commands, ""); len(problems) == 0 {
			t.Errorf("nothing is found wrong in %q", commands)
		}
	}
}

// readProblems returns what programs have noted since the last time.
func (w *world) readProblems(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(w.problems)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		err = os.Remove(w.problems)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool { return line == "" })
}
