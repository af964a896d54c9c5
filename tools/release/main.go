// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release consists of, without a container daemon:
//
//	release binaries -version v1.2.3 -out DIR   binaries, their SBOMs, plugin archives
//	release image    -version v1.2.3 -out DIR   an image tarball for each architecture
//	release checksums -out DIR                  checksums.txt of all files there
//
// The same source gives the same bytes, up to the Go toolchain.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// settings are those of all commands.
type settings struct {
	version string // v1.2.3, or what git describe says
	top     string // the repository
	out     string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func(settings) error{"binaries": binaries, "image": images, "checksums": checksums}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("name a command: binaries, image or checksums")
	}
	s := settings{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&s.version, "version", "", "version, as v1.2.3")
	flags.StringVar(&s.top, "top", "../..", "folder of the repository")
	flags.StringVar(&s.out, "out", "", "output folder")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if s.out == "" || flags.NArg() > 0 {
		return fmt.Errorf("-out is needed, and no arguments")
	}
	if args[0] != "checksums" && !regexp.MustCompile(`^v[0-9A-Za-z][-.+0-9A-Za-z]*$`).MatchString(s.version) {
		return fmt.Errorf("-version %q: write v1.2.3", s.version)
	}
	for _, path := range []*string{&s.top, &s.out} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	return commands[args[0]](s)
}
