// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const oneMarker = "package a\n\n// +kubebuilder:webhook:path=/a,mutating=true,failurePolicy=fail,sideEffects=None,groups=\"\",resources=pods,verbs=create,versions=v1,name=a.example.com,admissionReviewVersions=v1\n"

func TestOnlyRegularFilesOfTheProjectAreRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.go")
	for name, tc := range map[string]struct {
		make func(project string) error
		want string // the error; empty for none
	}{
		"a pipe": {func(p string) error { return syscall.Mkfifo(filepath.Join(p, "pipe.go"), 0o600) }, `"pipe.go" is not a regular file`},
		"a link to a pipe": {func(p string) error {
			return firstError(syscall.Mkfifo(filepath.Join(p, "pipe"), 0o600), os.Symlink("pipe", filepath.Join(p, "link.go")))
		}, `"link.go" is not a regular file`},
		"a link to an endless device": {func(p string) error { return os.Symlink("/dev/zero", filepath.Join(p, "zero.go")) }, `"zero.go": `},
		"a link to a file outside": {func(p string) error {
			return firstError(os.WriteFile(outside, []byte(oneMarker), 0o600), os.Symlink(outside, filepath.Join(p, "link.go")))
		}, "a link may lead to a file of the project"},
		"a link to itself":   {func(p string) error { return os.Symlink("link.go", filepath.Join(p, "link.go")) }, `"link.go": `},
		"a link to a folder": {func(p string) error { return os.Symlink(".", filepath.Join(p, "link.go")) }, `"link.go" is not a regular file`},
		"an editor's lock":   {func(p string) error { return os.Symlink("me@host", filepath.Join(p, ".#a.go")) }, ""},
		"a link to a file of the project": {func(p string) error {
			return firstError(os.WriteFile(filepath.Join(p, "b.txt"), []byte("package a\n"), 0o600), os.Symlink("b.txt", filepath.Join(p, "b.go")))
		}, ""},
		"a file that is too large": {func(p string) error {
			return firstError(os.WriteFile(filepath.Join(p, "b.go"), []byte("package a\n"), 0o600), os.Truncate(filepath.Join(p, "b.go"), maxFileBytes+1))
		}, `"b.go" has more than 16 MiB`},
		"files that are too large together": {func(p string) error {
			for i := range maxProjectBytes/maxFileBytes + 1 {
				name := filepath.Join(p, fmt.Sprintf("b%d.go", i))
				if err := firstError(os.WriteFile(name, []byte("package a\n"), 0o600), os.Truncate(name, maxFileBytes)); err != nil {
					return err
				}
			}
			return nil
		}, "its Go files have more than 512 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			project := t.TempDir()
			if err := firstError(os.WriteFile(filepath.Join(project, "a.go"), []byte(oneMarker), 0o600), tc.make(project)); err != nil {
				t.Fatal(err)
			}
			files, _, err := Definitions(project)
			if tc.want == "" && (err != nil || len(files) != 1) {
				t.Errorf("%d files, %v", len(files), err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAProjectHasAtMostTenThousandMarkers(t *testing.T) {
	project := t.TempDir()
	write := func(name string, from, to int) {
		t.Helper()
		text := strings.Builder{}
		text.WriteString("package a\n")
		for i := from; i < to; i++ {
			text.WriteString(strings.NewReplacer("path=/a", fmt.Sprintf("path=/a%d", i), "name=a.", fmt.Sprintf("name=a%d.", i)).Replace(strings.TrimPrefix(oneMarker, "package a\n")))
		}
		if err := os.WriteFile(filepath.Join(project, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", 0, maxMarkers)
	files, _, err := Definitions(project)
	if err != nil || len(files) != 1 || strings.Count(string(files[0].Content), "h.A") != maxMarkers {
		t.Fatalf("%d files, %v", len(files), err)
	}
	write("b.go", maxMarkers, maxMarkers+1)
	if _, _, err := Definitions(project); err == nil || !strings.Contains(err.Error(), "its Go files have more than 10000 markers") {
		t.Errorf("got %v", err)
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
