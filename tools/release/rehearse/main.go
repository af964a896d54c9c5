// SPDX-License-Identifier: Apache-2.0

// Command rehearse makes a release of HEAD and then fetches, verifies and installs it as strangers do: from a
// module proxy, an OCI registry and a file server on loopback, and onto a real API server. It prints how
// long each step took, and ends with 1 at the first that fails.
//
// Usage: rehearse -top FOLDER -version v0.1.0-rc.1
//
// test/lab/shared runs it with an API server. KUBEBUILDER_ASSETS has helm, kubectl and kustomize.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

const library = "github.com/sallyport-io/sallyport"

// rehearsal is one run, in a folder of its own.
type rehearsal struct {
	version, tmp string
	top          string // a clone of the repository, which gets the tags
	out, key     string
	files        string // URL of the release's files
	proxy        string // URL of the module proxy
	registry     *failing
	env          []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rehearse:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to do
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("rehearse", flag.ContinueOnError)
	top := flags.String("top", ".", "folder of the repository")
	version := flags.String("version", "v0.1.0-rc.1", "version that is rehearsed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "sallyport-rehearsal-")
	if err != nil {
		return err
	}
	r := &rehearsal{version: *version, tmp: tmp, top: filepath.Join(tmp, "sallyport"), out: filepath.Join(tmp, "release"), key: filepath.Join(tmp, "key.pem")}
	defer r.clean()
	if err := r.prepare(ctx, *top); err != nil {
		return err
	}
	files := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer files.Close()
	r.files, r.proxy = files.URL, files.URL+"/modules"
	r.registry = newRegistry()
	defer r.registry.server.Close()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"what prevents a release is said", r.refused},
		{"a release, signed and tagged", r.release},
		{"the same bytes once more", r.again},
		{"publish to a registry that fails half-way, and again", r.publish},
		{"the image: one file, no build paths, no root", r.image},
		{"go get in a new project", r.newProject},
		{"go get in the bookstore's project", r.bookstore},
		{"go install", r.install},
		{"tags have what the proxy has", r.tags},
		{"krew's archive", r.krew},
		{"the chart, as Artifact Hub reads it", r.hub},
		{"every command of docs/install.md, From a release", r.documented},
		{"a first change, as CONTRIBUTING.md leads to it", r.firstChange},
	} {
		started := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("| %-52s | %4.0f s |\n", step.name, time.Since(started).Seconds())
	}
	return nil
}

// clean removes the folder, in which Go's module cache may not be written.
func (r *rehearsal) clean() {
	_ = filepath.WalkDir(r.tmp, func(name string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // a folder needs x
		}
		return nil
	})
	_ = os.RemoveAll(r.tmp)
}

// prepare clones the repository, and gives the changelog a section for the version if it has none.
func (r *rehearsal) prepare(ctx context.Context, top string) error {
	top, err := filepath.Abs(top)
	if err != nil {
		return err
	}
	r.env = append(os.Environ(), "CGO_ENABLED=0", "GIT_AUTHOR_NAME=release", "GIT_AUTHOR_EMAIL=release@example.com", "GIT_COMMITTER_NAME=release", "GIT_COMMITTER_EMAIL=release@example.com")
	if _, err := r.command(ctx, r.tmp, "git", "clone", "--quiet", top, r.top); err != nil {
		return err
	}
	if _, err := r.command(ctx, r.tmp, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", r.key); err != nil {
		return err
	}
	name := filepath.Join(r.top, "CHANGELOG.md")
	text, err := os.ReadFile(name)
	section := "## [" + strings.TrimPrefix(r.version, "v") + "]"
	if err != nil || strings.Contains(string(text), section) {
		return err
	}
	changed := strings.Replace(string(text), "## [Unreleased]", "## [Unreleased]\n\n"+section+" - 1970-01-01", 1)
	return os.WriteFile(name, []byte(changed), 0o600)
}

// refused tries what must stop a release: nothing may be made then.
func (r *rehearsal) refused(ctx context.Context) error {
	for _, t := range []struct {
		want string
		args []string
	}{
		{"uncommitted changes", nil}, // the changelog's new section
		{"not a semantic version", []string{"-version", "v0.1"}},
		{`CHANGELOG.md has no section "## [9.9.9]`, []string{"-version", "v9.9.9"}},
		{"reading the signing key", []string{"-key", filepath.Join(r.tmp, "missing.pem")}},
		{"is not an ECDSA private key", []string{"-key", filepath.Join(r.top, "LICENSE")}},
		{"a tagged release is signed", []string{"-tag", "-key", ""}},
	} {
		_, err := r.releaseCommand(ctx, "all", append([]string{"-out", r.out}, t.args...)...)
		if err := wantError(err, t.want); err != nil {
			return err
		}
		if entries, _ := os.ReadDir(r.out); len(entries) > 0 {
			return fmt.Errorf("%d files were written despite the error %q", len(entries), t.want)
		}
	}
	_, err := r.command(ctx, r.top, "git", "commit", "--quiet", "--all", "--message", "a section for the version, if there is none", "--allow-empty")
	return err
}

// wantError returns nil if the error contains the text.
func wantError(err error, text string) error {
	switch {
	case err == nil:
		return fmt.Errorf("no error, want %q", text)
	case !strings.Contains(err.Error(), text):
		return fmt.Errorf("want %q, got %w", text, err)
	}
	return nil
}

func (r *rehearsal) release(ctx context.Context) error {
	if _, err := r.releaseCommand(ctx, "all", "-out", r.out, "-tag"); err != nil {
		return err
	}
	_, err := r.releaseCommand(ctx, "all", "-out", filepath.Join(r.tmp, "twice"))
	return wantError(err, "already tagged")
}

func (r *rehearsal) again(ctx context.Context) error {
	clone, out := filepath.Join(r.tmp, "elsewhere", "clone"), filepath.Join(r.tmp, "again")
	if _, err := r.command(ctx, r.tmp, "git", "clone", "--quiet", "--no-tags", r.top, clone); err != nil {
		return err
	}
	if _, err := r.releaseCommand(ctx, "all", "-top", clone, "-out", out); err != nil {
		return err
	}
	_, err := r.command(ctx, r.tmp, "diff", "--recursive", "--brief", r.out, out)
	return err
}

func (r *rehearsal) newProject(ctx context.Context) error {
	const program = `package main

import (
	"fmt"

	"github.com/sallyport-io/sallyport"
	_ "github.com/sallyport-io/sallyport/controllerruntime"
	_ "github.com/sallyport-io/sallyport/sallyporttest"
)

func main() {
	app, err := sallyport.New("first")
	fmt.Println(app != nil, err)
}
`
	folder := filepath.Join(r.tmp, "project")
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600)); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/project"}, {"get", library + "@" + r.version}, {"mod", "tidy"}, {"vet", "."},
	} {
		if _, err := r.stranger(ctx, folder, "go", args...); err != nil {
			return err
		}
	}
	definition, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err == nil && strings.Contains(string(definition), "a-h/templ") {
		err = fmt.Errorf("go.mod of a new project requires what only the console needs:\n%s", definition)
	}
	return err
}

func (r *rehearsal) bookstore(ctx context.Context) error {
	folder := filepath.Join(r.tmp, "bookstore")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(r.top, "examples/bookstore"))); err != nil {
		return err
	}
	name := filepath.Join(folder, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	definition, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	// There is no module of the repository beside it any more.
	edit := []string{"mod", "edit"}
	for _, replaced := range definition.Replace {
		edit = append(edit, "-dropreplace="+replaced.Old.Path, "-droprequire="+replaced.Old.Path)
	}
	for _, args := range [][]string{edit, {"get", library + "@" + r.version}, {"mod", "tidy"}, {"vet", "./..."}} {
		if _, err := r.stranger(ctx, folder, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

func (r *rehearsal) install(ctx context.Context) error {
	if _, err := r.stranger(ctx, r.tmp, "go", "install", "-tags=grpcnotrace", "-trimpath", library+"/cmd/sallyport@"+r.version); err != nil {
		return err
	}
	return r.says(ctx, filepath.Join(r.tmp, "bin", "sallyport"))
}

// says checks what a binary says about itself.
func (r *rehearsal) says(ctx context.Context, binary string) error {
	text, err := r.command(ctx, r.tmp, binary, "version", "-o", "json")
	for _, want := range []string{`"version": "` + r.version + `"`, `"kubernetes": "v1.`, runtime.GOOS + "/" + runtime.GOARCH} {
		if err == nil && !strings.Contains(text, want) {
			err = fmt.Errorf("output of %s version does not contain %s: %s", filepath.Base(binary), want, text)
		}
	}
	return err
}

// tags compares what Go gets from the tags with what the proxy's files have.
func (r *rehearsal) tags(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.out, "tags.txt"))
	if err != nil {
		return err
	}
	fromGit := []string{
		"GOMODCACHE=" + filepath.Join(r.tmp, "modules-from-git"), "GONOPROXY=" + library + "," + library + "/*",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + r.top + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + library,
	}
	for line := range strings.Lines(string(text)) {
		_, tag, _ := strings.Cut(strings.TrimSpace(line), " ")
		module := library + strings.TrimSuffix("/"+strings.TrimSuffix(tag, r.version), "/")
		var sums [2]string
		for i, env := range [][]string{nil, fromGit} {
			out, err := r.strangerWith(ctx, env, r.tmp, "go", "mod", "download", "-json", module+"@"+r.version)
			if err != nil {
				return err
			}
			for part := range strings.Lines(out) {
				if strings.Contains(part, "Sum\"") {
					sums[i] += strings.Trim(part, "\t,\n") + " "
				}
			}
		}
		if sums[0] != sums[1] || sums[0] == "" {
			return fmt.Errorf("%s: sums differ: %s in the proxy, but at the tag %s: %s", module, sums[0], tag, sums[1])
		}
	}
	return nil
}

func (r *rehearsal) krew(ctx context.Context) error {
	name := "kubectl-sallyport-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	manifest, err := os.ReadFile(filepath.Join(r.out, "sallyport.krew.yaml"))
	if err != nil {
		return err
	}
	sum, err := r.command(ctx, r.out, "sha256sum", name)
	if err != nil {
		return err
	}
	if sum, _, _ = strings.Cut(sum, " "); !strings.Contains(string(manifest), "/"+r.version+"/"+name+"\n    sha256: "+sum+"\n") {
		return fmt.Errorf("the manifest for krew does not list %s with sum %s:\n%s", name, sum, manifest)
	}
	if _, err := r.command(ctx, r.tmp, "tar", "-xzf", filepath.Join(r.out, name)); err != nil {
		return err
	}
	return r.says(ctx, filepath.Join(r.tmp, "kubectl-sallyport"))
}

// cosign is who verifies images.
const cosign = "github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3"

// documented runs the commands that docs/install.md has for this, from the addresses of the rehearsal.
func (r *rehearsal) documented(ctx context.Context) error {
	blocks, err := r.blocks("docs/install.md", "<!-- not run: `make rehearse` runs it -->", 3)
	if err != nil {
		return err
	}
	kubeconfig := os.Getenv("SALLYPORT_TEST_KUBECONFIG")
	if kubeconfig == "" {
		return errors.New("no API server: run this program through test/lab/shared")
	}
	folder := filepath.Join(r.tmp, "reader")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	bin := filepath.Join(r.tmp, "bin")
	if _, err := r.commandWith(ctx, []string{"GOBIN=" + bin, "GOWORK=off", "GOFLAGS="}, r.tmp, "go", "install", cosign); err != nil {
		return err
	}
	for _, script := range blocks {
		fmt.Print(script)
		out, err := r.strangerWith(ctx, []string{
			"KUBECONFIG=" + kubeconfig, "VERSION=" + r.version, "FILES=" + r.files, "REGISTRY=" + r.registry.host() + "/sallyport-io",
			"HELM_PLAIN_HTTP=1", "PATH=" + bin + ":" + os.Getenv("KUBEBUILDER_ASSETS") + ":" + os.Getenv("PATH"),
		}, folder, "bash", "-euo", "pipefail", "-c", script)
		fmt.Print(out)
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseCommand runs tools/release of the clone.
func (r *rehearsal) releaseCommand(ctx context.Context, name string, args ...string) (string, error) {
	args = append([]string{
		"run", ".", name, "-version", r.version, "-top", r.top, "-tools", os.Getenv("KUBEBUILDER_ASSETS"), "-key", r.key,
		"-repository", r.registry.host() + "/sallyport-io/sallyport",
	}, args...)
	return r.commandWith(ctx, []string{"GOWORK=off"}, filepath.Join(r.top, "tools/release"), "go", args...)
}

// stranger runs a command of somebody who has nothing but the proxy.
func (r *rehearsal) stranger(ctx context.Context, folder, name string, args ...string) (string, error) {
	return r.strangerWith(ctx, nil, folder, name, args...)
}

func (r *rehearsal) strangerWith(ctx context.Context, env []string, folder, name string, args ...string) (string, error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return "", err
	}
	lines := strings.Fields(string(cache))
	return r.commandWith(ctx, append([]string{
		"GOWORK=off", "GOFLAGS=", "GOBIN=" + filepath.Join(r.tmp, "bin"), "GOMODCACHE=" + filepath.Join(r.tmp, "modules"),
		"GONOSUMDB=" + library + "," + library + "/*", "GOPROXY=" + r.proxy + ",file://" + lines[0] + "/cache/download," + lines[1],
	}, env...), folder, name, args...)
}

func (r *rehearsal) command(ctx context.Context, folder, name string, args ...string) (string, error) {
	return r.commandWith(ctx, nil, folder, name, args...)
}

func (r *rehearsal) commandWith(ctx context.Context, env []string, folder, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = folder, slices.Concat(r.env, env)
	var out, problems strings.Builder
	command.Stdout, command.Stderr = &out, io.MultiWriter(&problems)
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), problems.String())
	}
	return out.String(), nil
}
