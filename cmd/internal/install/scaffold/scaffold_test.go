// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// bookstore is a project without problems.
func bookstore() *Project {
	return &Project{Module: "github.com/me/bookstore", Kind: "Book", Versions: []string{"v1", "v1alpha1"}, Scope: ScopeNamespaced, Sallyport: "v1.2.3"}
}

func filesOf(t *testing.T, p *Project) []File {
	t.Helper()
	files, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestWhatIsNotSaidIsFilledIn(t *testing.T) {
	p := bookstore()
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	if p.Name != "bookstore" || p.Group != "bookstore.example.com" || p.Plural != "books" || !slices.Equal(p.Versions, []string{"v1alpha1", "v1"}) {
		t.Errorf("got %+v", p)
	}
	p = bookstore()
	p.Module = "example.com/me/library/v2"
	if err := p.Complete(); err != nil || p.Name != "library" {
		t.Errorf("the name is %q, %v", p.Name, err)
	}
}

func TestAllProblemsOfAProjectAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Project)
		want   []string
	}{
		"no kind and no version":                 {func(p *Project) { p.Kind, p.Versions = "", nil }, []string{"--kind", "--versions", "is needed"}},
		"a module that is no path":               {func(p *Project) { p.Module = "github.com/me/book store" }, []string{`module "github.com/me/book store"`}},
		"a module with an invalid name":          {func(p *Project) { p.Module = "github.com/me/book_store" }, []string{`--name "book_store"`, "choose another name"}},
		"a name that Services are too long with": {func(p *Project) { p.Name = strings.Repeat("a", 60) }, []string{"--name"}},
		"a kind in lower case":                   {func(p *Project) { p.Kind = "book" }, []string{`--kind "book"`, "capital letter"}},
		"a kind that is not a Go name":           {func(p *Project) { p.Kind = "Book-Shop" }, []string{`--kind "Book-Shop"`}},
		"a kind that is a list":                  {func(p *Project) { p.Kind = "BookList" }, []string{"leave the List out"}},
		"a kind that the package has":            {func(p *Project) { p.Kind = "GroupVersion" }, []string{"is taken"}},
		"a kind that is too long":                {func(p *Project) { p.Kind = "B" + strings.Repeat("o", 60) }, []string{"at most 59 characters"}},
		"a plural in upper case":                 {func(p *Project) { p.Plural = "Books" }, []string{`--plural "Books"`}},
		"a version of releases":                  {func(p *Project) { p.Versions = []string{"v1.2"} }, []string{`--versions "v1.2"`, "v1beta1"}},
		"a version that is a keyword":            {func(p *Project) { p.Versions = []string{"type"} }, []string{`--versions "type"`}},
		"a version twice":                        {func(p *Project) { p.Versions = []string{"v1", "v1"} }, []string{"is there twice"}},
		"a group without a dot":                  {func(p *Project) { p.Group = "books" }, []string{`--group "books"`, "books.example.com"}},
		"a group of Kubernetes":                  {func(p *Project) { p.Group = "books.k8s.io" }, []string{"reserved for Kubernetes"}},
		"a group in upper case":                  {func(p *Project) { p.Group = "Books.example.com" }, []string{`--group "Books.example.com"`}},
		"a group that is too long":               {func(p *Project) { p.Group = strings.Repeat("a.", 120) + "example.com" }, []string{"too long for names of webhooks"}},
		"a scope that does not exist":            {func(p *Project) { p.Scope = "Global" }, []string{`--scope "Global": choose Namespaced or Cluster`}},
		"a build that is no release":             {func(p *Project) { p.Sallyport = "devel-0123456789ab" }, []string{"devel-0123456789ab", "--replace"}},
		"a build of a changed checkout":          {func(p *Project) { p.Sallyport = "v1.2.3+dirty" }, []string{"--replace"}},
		"several problems":                       {func(p *Project) { p.Kind, p.Scope, p.Group = "book", "", "x" }, []string{"--kind", "--scope", "--group"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := bookstore()
			tc.change(p)
			err := p.Complete()
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
		})
	}
}

func TestFilesAreThoseOfTheProject(t *testing.T) {
	paths := func(files []File) string {
		var all []string
		for _, file := range files {
			all = append(all, file.Path)
		}
		return strings.Join(all, " ")
	}
	const both = ".dockerignore .gitignore Dockerfile Makefile README.md "
	if got, want := paths(filesOf(t, bookstore())), both+
		"api/v1/book_conversion.go api/v1/book_types.go api/v1/doc.go api/v1/register.go api/v1/zz_generated.deepcopy.go "+
		"api/v1alpha1/book_conversion.go api/v1alpha1/book_types.go api/v1alpha1/doc.go api/v1alpha1/register.go api/v1alpha1/zz_generated.deepcopy.go "+
		"apiserver_test.go config/crd/bookstore.example.com_books.yaml config/kustomization.yaml controller.go "+
		"conversion_test.go go.mod main.go tools/go.mod webhooks.go webhooks_test.go"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p := bookstore()
	p.Versions = []string{"v1"}
	for _, file := range filesOf(t, p) {
		if strings.Contains(file.Path, "conversion") || bytes.Contains(file.Content, []byte("onversion\"")) {
			t.Errorf("with one version %s has a conversion:\n%s", file.Path, file.Content)
		}
	}
}

// What a project requires, this repository is tested with.
func TestProjectsRequireTheVersionsOfThisRepository(t *testing.T) {
	requirements := func(path string, data []byte) map[string]string {
		parsed, err := modfile.Parse(path, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		required := map[string]string{"go": parsed.Go.Version}
		for _, r := range parsed.Require {
			required[r.Mod.Path] = r.Mod.Version
		}
		return required
	}
	ours := map[string]string{}
	for _, path := range []string{"../../../../tools/go.mod", "../../../go.mod"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for module, version := range requirements(path, data) {
			ours[module] = version
		}
	}
	files := filesOf(t, bookstore())
	required := map[string]string{}
	for _, path := range []string{"tools/go.mod", "go.mod"} {
		i := slices.IndexFunc(files, func(f File) bool { return f.Path == path })
		maps.Copy(required, requirements(path, files[i].Content))
	}
	if required["github.com/sallyport-io/sallyport"] != "v1.2.3" || required["sigs.k8s.io/controller-tools"] == "" || len(required) < 8 {
		t.Errorf("required: %v", required)
	}
	for module, version := range required {
		if module != "github.com/sallyport-io/sallyport" && version != ours[module] {
			t.Errorf("the go.mod of a project has %s %s; this repository has %s", module, version, ours[module])
		}
	}
}

func TestFilesThatExistStay(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range []string{"go.mod", "main.go"} {
		if err := os.WriteFile(at(name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := filesOf(t, bookstore())
	var out bytes.Buffer
	for _, dryRun := range []bool{true, false} {
		err := (Target{Folder: folder, DryRun: dryRun}).Install(&out, files, "")
		if err == nil || !strings.Contains(err.Error(), "go.mod, main.go; ") || !strings.Contains(err.Error(), "--overwrite") || out.Len() > 0 {
			t.Errorf("dry run %v: %v, %s", dryRun, err, &out)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
		t.Errorf("there is %v, %v", entries, err)
	}
	if err := (Target{Folder: folder, Force: true}).Install(&out, files, "this"); err != nil || !strings.Contains(out.String(), "wrote "+at("main.go")+"\n") || !strings.HasSuffix(out.String(), "next, in "+folder+": this\n") {
		t.Errorf("%v, %s", err, &out)
	}
	for _, file := range files {
		if got, err := os.ReadFile(at(file.Path)); err != nil || !bytes.Equal(got, file.Content) {
			t.Errorf("%s: %v", file.Path, err)
		}
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	var out bytes.Buffer
	if err := (Target{Folder: folder, DryRun: true}).Install(&out, filesOf(t, bookstore()), "x"); err != nil || !strings.Contains(out.String(), "would write "+filepath.Join(folder, "go.mod")+"\n") {
		t.Errorf("%v, %s", err, &out)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestNothingIsWrittenOutsideOfTheFolder(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "api")); err != nil {
		t.Fatal(err)
	}
	if err := (Target{Folder: folder, Force: true}).Install(&bytes.Buffer{}, filesOf(t, bookstore()), ""); err == nil {
		t.Error("a link that leads outside is followed")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
}
