// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"os"
	"slices"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/tools/txtar"
)

// An Archive is a txtar file with all that belongs to one case.
type Archive struct {
	path  string
	files *txtar.Archive
}

// Open reads an archive.
func Open(t testing.TB, path string) *Archive {
	t.Helper()
	files, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &Archive{path, files}
}

// File is the content of a file; nil if there is none of the name.
func (a *Archive) File(name string) []byte {
	for _, file := range a.files.Files {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}

// Equal compares with a file of the archive, which must have none of those that it stands
// instead of. With -update it is written, and those are removed.
func (a *Archive) Equal(t testing.TB, name, got string, insteadOf ...string) {
	t.Helper()
	if *update {
		a.write(t, name, []byte(got), insteadOf)
		return
	}
	for _, other := range insteadOf {
		if a.File(other) != nil {
			t.Errorf("%s: it has a %s; what comes out is for %s", a.path, other, name)
		}
	}
	if diff := udiff.Unified("want", "got", string(a.File(name)), got); diff != "" {
		t.Errorf("%s, %s:\n%s", a.path, name, diff)
	}
}

func (a *Archive) write(t testing.TB, name string, got []byte, insteadOf []string) {
	t.Helper()
	a.files.Files = slices.DeleteFunc(a.files.Files, func(file txtar.File) bool { return slices.Contains(insteadOf, file.Name) })
	i := slices.IndexFunc(a.files.Files, func(file txtar.File) bool { return file.Name == name })
	if i < 0 {
		i = len(a.files.Files)
		a.files.Files = append(a.files.Files, txtar.File{Name: name})
	}
	a.files.Files[i].Data = got
	if err := os.WriteFile(a.path, txtar.Format(a.files), 0o644); err != nil {
		t.Fatal(err)
	}
}
