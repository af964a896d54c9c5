// SPDX-License-Identifier: Apache-2.0

// Command ci does what the targets of the Makefile are called after: it finds packages and modules,
// builds what tests need, and runs stages of them one after another or side by side.
//
// Usage: ci [-top FOLDER] TARGET...
//
// The variables of the Makefile (K8S, PARALLEL, CHECKS and others) are read from the environment, where
// make puts them. Without a target it lists them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(1)
	}
}

// targets is by name what can be asked for. Those that end in exec replace this process.
var targets = map[string]func(*tree) error{
	// programs.go
	"quickstart":   (*tree).quickstart,
	"demo":         func(t *tree) error { return t.demo() },
	"demo-cloud":   func(t *tree) error { return t.demo("-cloud") },
	"dev":          func(t *tree) error { return t.demo("-stay") },
	"build":        (*tree).buildSallyport,
	"controlplane": (*tree).printControlPlane,
	"image":        (*tree).image,
	"release":      (*tree).release,
	"rehearse":     (*tree).rehearse,
	"adopters":     (*tree).adopters,
	"bench":        func(t *tree) error { return t.bench() },
	"scale":        func(t *tree) error { return t.bench("-only", "scale") },
	"bench-peers":  func(t *tree) error { return t.bench("-only", "peers") },
	"faults":       (*tree).faults,
	"conformance":  (*tree).conformance,

	// stages.go
	"check":      (*tree).check,
	"test":       (*tree).test,
	"nightly":    (*tree).nightly,
	"format":     (*tree).format,
	"vet":        (*tree).vet,
	"floor":      (*tree).floor,
	"unit":       (*tree).unit,
	"modules":    (*tree).modules,
	"race":       (*tree).race,
	"properties": (*tree).properties,
	"apiserver":  (*tree).apiserver,
	"operator":   (*tree).operator,
	"alone":      (*tree).aloneTests,
	"race-all":   (*tree).raceAll,
	"upgrade":    (*tree).upgrade,
	"provider":   (*tree).provider,
	"fuzz":       (*tree).fuzz,

	// generate.go
	"screenshots": (*tree).screenshots,
	"generate":    (*tree).generate,
	"definitions": (*tree).definitions,
	"templates":   (*tree).templates,
	"reference":   (*tree).reference,
	"generated":   (*tree).generated,

	// verify.go
	"lint":       (*tree).lint,
	"verify":     (*tree).verify,
	"commits":    (*tree).commits,
	"record-api": (*tree).recordAPI,
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ci", flag.ContinueOnError)
	top := flags.String("top", ".", "folder of the checkout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			fmt.Println(name)
		}
		return nil
	}
	t, err := newTree(ctx, *top, os.Getenv)
	if err != nil {
		return err
	}
	for _, name := range flags.Args() {
		target, ok := targets[name]
		if !ok {
			return fmt.Errorf("there is no target %q; without arguments, ci lists them", name)
		}
		if err := target(t); err != nil {
			return errors.Join(fmt.Errorf("%s failed", name), err)
		}
	}
	return nil
}
