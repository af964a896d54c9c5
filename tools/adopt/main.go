// SPDX-License-Identifier: Apache-2.0

// Command adopt tries what `go get` of the library does to the go.mod of others. It adds the packages of an
// author to a copy of each module, compiles them there, and prints which modules are upgraded and which are new.
//
// Usage: adopt [-suites] FOLDER MODULE@VERSION ...
//
// FOLDER is the repository. MODULE is one that a module proxy has; "new" stands for a new application,
// and VERSION then is that of controller-runtime: new@v0.24.1.
//
// With -suites it then compares what `sallyport init --from` makes of their manifests with the manifests, and runs
// tests of these projects that call webhooks, as they are and with our server.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const library = "github.com/sallyport-io/sallyport"

// program imports what an author of webhooks does.
const program = `package main

import (
	_ "` + library + `"
	_ "` + library + `/admission"
	_ "` + library + `/controllerruntime"
	_ "` + library + `/conversion"
	_ "` + library + `/sallyporttest"
	_ "sigs.k8s.io/controller-runtime"
)

func main() {}
`

func main() {
	withSuites := flag.Bool("suites", false, "compare definitions with manifests, and run their tests with our server, too")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: adopt [-suites] FOLDER MODULE@VERSION ...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), flag.Args()[1:], *withSuites); err != nil {
		fmt.Fprintln(os.Stderr, "adopt:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, top string, adopters []string, withSuites bool) error {
	top, err := filepath.Abs(top)
	if err != nil {
		return err
	}
	for _, adopter := range adopters {
		changed, err := adopt(top, adopter)
		if err != nil {
			return fmt.Errorf("%s: %w", adopter, err)
		}
		fmt.Fprintf(out, "%s: %d upgrades, %d new modules\n", adopter, len(changed.upgraded), len(changed.added))
		for _, line := range slices.Concat(changed.upgraded, changed.added) {
			fmt.Fprintln(out, "  "+line)
		}
	}
	if !withSuites {
		return nil
	}
	only := func(module string) bool { return slices.Contains(adopters, module) }
	return errors.Join(compareDefinitions(out, top, only), runSuites(out, top, only), runAdapters(out, top, only))
}

// A change is what happens to the requirements of a go.mod.
type change struct{ upgraded, added []string }

// adopt adds the library to a copy of a module. An error means too that it does not compile there.
func adopt(top, adopter string) (change, error) {
	tmp, err := os.MkdirTemp("", "adopt-")
	if err != nil {
		return change{}, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	module, version, _ := strings.Cut(adopter, "@")
	if module == "new" {
		err = fresh(tmp, version)
	} else {
		err = copied(tmp, adopter)
	}
	if err != nil {
		return change{}, err
	}
	before, err := requirements(tmp)
	if err != nil {
		return change{}, err
	}
	folder := filepath.Join(tmp, "adopted")
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600)); err != nil {
		return change{}, err
	}
	if err := require(tmp, top, "./adopted"); err != nil {
		return change{}, err
	}
	if _, err := goCommand(tmp, "build", "-o", os.DevNull, "./adopted"); err != nil {
		return change{}, err
	}
	after, err := requirements(tmp)
	if err != nil {
		return change{}, err
	}
	var c change
	for _, path := range slices.Sorted(maps.Keys(after)) {
		switch was, ok := before[path]; {
		case !ok:
			c.added = append(c.added, path)
		case was != after[path]:
			c.upgraded = append(c.upgraded, path+" "+was+" → "+after[path])
		}
	}
	return c, nil
}

// require adds the repository's library to the go.mod of a folder, as `go get` does for packages there.
func require(folder, top string, packages ...string) error {
	_, err := goCommand(folder, "mod", "edit", "-require="+library+"@v0.0.0-00010101000000-000000000000", "-replace="+library+"="+top)
	if err == nil {
		_, err = goCommand(folder, append([]string{"get"}, packages...)...)
	}
	return err
}

// fresh makes a module with controller-runtime.
func fresh(folder, version string) error {
	source := "package main\n\nimport _ \"sigs.k8s.io/controller-runtime\"\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(source), 0o600); err != nil {
		return err
	}
	_, err := goCommand(folder, "mod", "init", "example.com/new")
	if err == nil {
		_, err = goCommand(folder, "get", "sigs.k8s.io/controller-runtime@"+version)
	}
	if err == nil {
		_, err = goCommand(folder, "mod", "tidy")
	}
	return err
}

// copied copies a module from the module cache.
func copied(folder, module string) error {
	source, err := downloaded(folder, module)
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(name, cmp.Or(map[bool]os.FileMode{true: 0o755}[entry.IsDir()], 0o644))
	})
}

// downloaded returns where the module cache has a module: of a version, or of the one that the go.mod of a folder asks for.
func downloaded(folder, module string) (string, error) {
	out, err := goCommand(folder, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var source struct{ Dir string }
	err = json.Unmarshal(out, &source)
	return source.Dir, err
}

// requirements are the versions in the go.mod of a folder, by module.
func requirements(folder string) (map[string]string, error) {
	out, err := goCommand(folder, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	return versions, nil
}

func goCommand(folder string, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir = folder
	command.Env = environment()
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out, nil
}

func environment() []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath -tags=grpcnotrace", "CGO_ENABLED=0")
}
