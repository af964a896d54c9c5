// SPDX-License-Identifier: Apache-2.0

// Command compatibility compares the stable core of the module with the API that was recorded
// last, by the rules of golang.org/x/exp/apidiff. The stable core are the packages that
// docs/compatibility.md lists, and the types of other packages that their signatures name.
//
// Usage: compatibility [-record] FOLDER
//
// It prints what changed incompatibly, and fails if anything did. With -record it writes the API
// as it is to tools/compatibility/recorded, a file a package. It asks the go command for what the
// packages export, so all it needs is in the module cache and the build cache; it reads no history.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// stable are the packages of the stable core, by their folders.
var stable = []string{".", "admission", "cloud", "controllerruntime", "conversion", "jsonpatch", "sallyporttest"}

// recorded is the folder of the recorded API, in that of the module.
const recorded = "tools/compatibility/recorded"

func main() {
	write := flag.Bool("record", false, "record the API as it is")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: compatibility [-record] FOLDER")
		os.Exit(2)
	}
	run := check
	if *write {
		run = record
	}
	if err := run(os.Stdout, flag.Arg(0), stable); err != nil {
		fmt.Fprintln(os.Stderr, "compatibility:", err)
		os.Exit(1)
	}
}

func record(_ io.Writer, root string, folders []string) error {
	m, err := open(root, folders)
	if err != nil {
		return err
	}
	files, err := m.describe(folders)
	if err != nil {
		return err
	}
	return save(root, files)
}

func check(out io.Writer, root string, folders []string) error {
	m, err := open(root, folders)
	if err != nil {
		return err
	}
	files, err := read(root)
	if err != nil {
		return err
	}
	incompatible, added, err := m.compare(folders, files)
	if err != nil {
		return err
	}
	for _, line := range added {
		fmt.Fprintln(out, "not recorded yet:", line)
	}
	if len(incompatible) == 0 {
		return nil
	}
	for _, line := range incompatible {
		fmt.Fprintln(out, "incompatible:", line)
	}
	return fmt.Errorf("%d incompatible changes of the stable core, see docs/compatibility.md: take them back, "+
		"or, if they are intended, run make record-api and describe the migration in CHANGELOG.md", len(incompatible))
}
