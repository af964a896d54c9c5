// SPDX-License-Identifier: Apache-2.0

// Package programs stands in for the programs that the commands of documents name. A shell
// finds links with their names first, which lead to cmd/test/docs/docsprogram. That runs the real
// program, or checks its arguments, and writes what is wrong with them into a file.
//
// It takes from the standard library alone: it starts hundreds of times in a run.
package programs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Environment variables of the shell, for the programs.
const (
	ProblemsVariable = "DOCS_PROBLEMS" // the file of what is wrong with commands, a line each
	CheckVariable    = "DOCS_CHECK"    // not empty: nothing is run
	AsVariable       = "DOCS_AS"       // the user that kubectl impersonates
	ServerVariable   = "DOCS_SERVER"   // the file with the ID of the server's process
	RootVariable     = "DOCS_ROOT"     // the repository
)

// RealVariable is the environment variable with the path of the real program of that name.
func RealVariable(name string) string {
	return "DOCS_REAL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

var programs = map[string]func(name string, args []string) (status int){
	"sallyport": runOrCheck, "kubectl": kubectl, "kubectl-sallyport": runOrCheck,
	"helm": runOrCheck, "kustomize": runOrCheck, "go": goCommand, "grep": grep, "openssl": openssl,
	"cloud-controller-manager": runOrCheck, "make": makeCommand, "faults": flagsOfSource, "bench": flagsOfSource,
}

// Names are those of the programs that commands may name.
func Names() []string { return slices.Collect(maps.Keys(programs)) }

// Others are programs that are left out where blocks are checked: what they are told is
// not ours to check. A block that names any other program has to say "not run".
var Others = []string{"base64", "chown", "cp", "curl", "install", "kubeadm", "ln", "sleep", "tail"}

// Run is the program that the first argument names. It returns its status, or becomes the real
// program.
func Run(args []string) (status int) {
	name := filepath.Base(args[0])
	if program, ok := programs[name]; ok {
		return program(name, args[1:])
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // one of Others: an end of a pipe, perhaps
	return 0
}

// problem notes what is wrong with a command.
func problem(format string, args ...any) {
	file, err := os.OpenFile(os.Getenv(ProblemsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, err = fmt.Fprintf(file, format+"\n", args...)
	if err := errors.Join(err, file.Close()); err != nil {
		panic(err)
	}
}

func realProgram(name string) string {
	return os.Getenv(RealVariable(name))
}

func runOrCheck(name string, args []string) int {
	if os.Getenv(CheckVariable) != "" {
		return checkFlags(name, args)
	}
	return become(realProgram(name), args)
}

// become has the program take the place of this one, and returns only if it cannot be run.
func become(path string, args []string) int {
	return failed(syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 127
}

// run passes on what the program says, and its status.
func run(path string, args []string) int {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return failed(err)
	}
	return cmd.ProcessState.ExitCode()
}

// groupOfCommands is a line of help that says that a command is missing.
var groupOfCommands = regexp.MustCompile(`(?m)^\s+(sallyport|kubectl|helm|kustomize)[a-z -]* (SUBCOMMAND|COMMAND|\[command\])( |$)`)

// checkFlags has the program itself read its arguments, for --help, which reads all flags
// first. A group of commands answers for a subcommand that it does not have.
func checkFlags(name string, args []string) int {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	out, err := exec.Command(realProgram(name), append(slices.Clone(args), "--help")...).CombinedOutput()
	switch {
	case err != nil:
		problem("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	case groupOfCommands.Match(out):
		problem("%s %s: there is no such command:\n%s", name, strings.Join(args, " "), out)
	}
	return 0
}

// needsNodes are commands of kubectl that end, or find something, only where controllers
// and pods run.
var needsNodes = regexp.MustCompile(`(^| )(logs|top|port-forward|exec|wait|rollout (status|undo)|delete namespace)( |$)`)

func kubectl(name string, args []string) int {
	line := strings.Join(args, " ")
	if os.Getenv(CheckVariable) != "" || needsNodes.MatchString(line) {
		return checkFlags(name, args)
	}
	if as := os.Getenv(AsVariable); as != "" {
		args = append(slices.Clone(args), "--as", as)
	}
	if !strings.Contains(line, "scale deployment sallyport --replicas 0") {
		return become(realProgram(name), args)
	}
	status := run(realProgram(name), args)
	if status == 0 {
		endServer()
	}
	return status
}

// endServer does what the controllers and the kubelet do when a Deployment is scaled to 0.
func endServer() {
	text, err := os.ReadFile(os.Getenv(ServerVariable))
	if err != nil {
		problem("no server runs: %v", err)
		return
	}
	id, err := strconv.Atoi(string(text))
	if err == nil {
		err = syscall.Kill(id, syscall.SIGTERM)
	}
	for ; err == nil; err = syscall.Kill(id, 0) {
		time.Sleep(20 * time.Millisecond)
	}
}

// goCommand runs examples, which are built once.
func goCommand(name string, args []string) int {
	if len(args) > 1 && args[0] == "run" {
		if example, ok := strings.CutPrefix(args[1], "./examples/"); ok && realProgram(example) != "" {
			return runOrCheck(example, args[2:])
		}
	}
	problem("%s %s: only examples can be run, of those that the test builds", name, strings.Join(args, " "))
	return 0
}

// grep that finds nothing is no problem of a document.
func grep(name string, args []string) int {
	if os.Getenv(CheckVariable) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}
	if status := run(realProgram(name), args); status > 1 {
		return status
	}
	return 0
}

// openssl is not on every machine.
func openssl(name string, args []string) int {
	if os.Getenv(CheckVariable) == "" && realProgram(name) != "" {
		return become(realProgram(name), args)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

var (
	assignment = regexp.MustCompile(`^([A-Z0-9]+)=(.*)$`)
	goFlag     = regexp.MustCompile(`(^|\s)-([a-z-]+)`)
)

// flagsIn says where the flags are defined that these variables and programs have.
var flagsIn = map[string]string{
	"FAULTS": "cmd/test/e2e/faults", "faults": "cmd/test/e2e/faults", "BENCH": "cmd/test/bench", "bench": "cmd/test/bench", "CONFORMANCE": "test/conformance",
}

// makeCommand looks for targets and variables in the Makefile. What make builds, other
// parts of `make test` use.
func makeCommand(_ string, args []string) int {
	data, err := os.ReadFile(filepath.Join(os.Getenv(RootVariable), "Makefile"))
	if err != nil {
		panic(err)
	}
	for _, arg := range args {
		set := assignment.FindStringSubmatch(arg)
		switch {
		case set != nil && !regexp.MustCompile(`(?m)^`+set[1]+` \?=`).Match(data):
			problem("make %s: the Makefile has no such variable", arg)
		case set != nil:
			if _, ok := flagsIn[set[1]]; ok {
				flagsOfSource(set[1], strings.Fields(set[2]))
			}
		case arg != "-s" && !regexp.MustCompile(`(?m)^([a-z -]+ )?`+regexp.QuoteMeta(arg)+`( [a-z -]+)?:`).Match(data):
			problem("make %s: there is no such target", arg)
		}
	}
	return 0
}

// flagsOfSource looks for the definitions of flags in the code: to build these programs
// takes longer than the test.
func flagsOfSource(name string, args []string) int {
	folder := filepath.Join(os.Getenv(RootVariable), filepath.FromSlash(flagsIn[name]))
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		panic(err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		code.Write(text)
	}
	for _, m := range goFlag.FindAllStringSubmatch(strings.Join(args, " "), -1) {
		if !regexp.MustCompile(`\.(Bool|Int|String|Duration)(Var)?\([^)]*"` + m[2] + `"`).MatchString(code.String()) {
			problem("%s: there is no flag -%s in %s", name, m[2], flagsIn[name])
		}
	}
	return 0
}
