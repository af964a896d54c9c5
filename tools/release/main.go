// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release consists of, without a container daemon:
//
//	release all     -version v1.2.3 -out DIR   everything
//	release image   -version v1.2.3 -out DIR   image tarballs and an OCI layout, of any state of the folder
//	release publish -version v1.2.3 -out DIR -registry HOST/PATH   the image and the chart to a registry
//
// The same commit gives the same bytes, up to the Go toolchain. Nothing leaves the machine but by publish,
// and no tag is set without -tag.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// settings are those of all commands.
type settings struct {
	version    string // v1.2.3, or what git describe says
	top        string // the repository
	out        string
	built      string // the folder with the binaries, if they were just built
	tools      string // the folder with helm and kustomize
	repository string // of the image in manifests
	registry   string // HOST/PATH of the image and the chart
	key        string // the file with the private key
	tag        bool
	plainHTTP  bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func(settings) error{"all": everything, "image": images, "publish": publish}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("missing or unknown command: use all, image or publish")
	}
	s := settings{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&s.version, "version", "", "version, such as v1.2.3")
	flags.StringVar(&s.top, "top", "../..", "folder of the repository")
	flags.StringVar(&s.out, "out", "", "output folder")
	flags.StringVar(&s.tools, "tools", "", "folder with the helm and kustomize binaries, for all and publish")
	flags.StringVar(&s.repository, "repository", "sallyport", "image in the manifests, without its tag")
	flags.StringVar(&s.registry, "registry", "", "HOST/PATH to which publish pushes the image sallyport and the chart charts/sallyport")
	flags.BoolVar(&s.plainHTTP, "plain-http", false, "connect to the registry without TLS")
	flags.StringVar(&s.key, "key", "", "file with the PEM-encoded ECDSA private key that signs the checksums; empty: no signature")
	flags.BoolVar(&s.tag, "tag", false, "tag the modules in the repository, without pushing the tags")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if s.out == "" || flags.NArg() > 0 {
		return fmt.Errorf("-out is required, and there are no arguments")
	}
	if !regexp.MustCompile(`^v[0-9A-Za-z][-.+0-9A-Za-z]*$`).MatchString(s.version) {
		return fmt.Errorf("invalid -version %q: use a version such as v1.2.3", s.version)
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

// everything makes a release in an empty folder, and says which step it is at.
func everything(s settings) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("no release was made:\n%w", err)
	}
	notes, err := s.notes()
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(s.out); err != nil || len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, so that the release has no files of another version", s.out)
	}
	for _, step := range []struct {
		what string
		make func() error
	}{
		{"release notes", func() error { return s.write("notes.md", []byte(notes)) }},
		{"binaries, SBOMs and the plugin", func() error { return binaries(s) }},
		{"completions and man pages", s.manuals},
		{"images", func() error { s.built = s.out; return images(s) }},
		{"chart", s.chart},
		{"manifests", s.manifests},
		{"modules", func() error { return modules(s) }},
		{"provenance", s.provenance},
		{"checksums", func() error { return checksums(s) }},
	} {
		started := time.Now()
		if err := step.make(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("made %s in %s\n", step.what, time.Since(started).Round(time.Second))
	}
	if s.key == "" {
		fmt.Println("checksums not signed: use -key FILE")
		return nil
	}
	return s.sign()
}
