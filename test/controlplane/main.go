// SPDX-License-Identifier: Apache-2.0

// Command controlplane gets the Kubernetes control plane that the tests, the
// demo and the benchmarks run against, and prints the folder that holds the binaries as
// its last line. etcd, kube-apiserver and kubectl are downloaded if they are published for
// envtest and the network has them, which is decided in seconds; unless SALLYPORT_CONTROLPLANE
// is "build". All else is built from the Go modules pinned in the go.mod beside it.
// kwok, which plays nodes and running pods, comes from the go.mod in ../kwok:
// its requirements do not go together with those of Kubernetes. Helm and kustomize come from
// that in ../../tools/deploy. e2e.test, the suite that Kubernetes tests itself with, comes from
// that in ../conformance/suite, which nobody needs who does not run it.
//
// Usage: go run . [-kubernetes RELEASE] [-index URL] [-plan] [etcd kube-apiserver kubectl ...]
//
// Without -kubernetes it is the release of the go.mod here; others are pinned by those
// in versions. With -plan it only says what it would do, and how long that takes.
//
// Binaries are cached outside the tree, keyed by everything that decides their
// content, so that a second run takes milliseconds. KUBEBUILDER_ASSETS, if set,
// wins: the folder it names is checked and printed, nothing is built.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A component is one binary of the control plane.
type component struct {
	name, pkg string
	duration  string // on two cores with an empty build cache, as announced
	module    string // folder of the go.mod that pins it, from here; empty for that of the release
	source    string // folder in the module with a main package of our own, whose files decide too
	versioned bool   // it is a part of Kubernetes, and told its version
}

var components = []component{
	{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", duration: "about 45 s"},
	{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", duration: "about 3 min", versioned: true},
	{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", duration: "about 1 min", versioned: true},
	{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", duration: "about 1 min", versioned: true},
	{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler", duration: "about 30 s", versioned: true},
	{name: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok", duration: "about 1 min", module: "../kwok"},
	{name: "helm", pkg: "helm.sh/helm/v4/cmd/helm", duration: "about 1 min", module: "../../tools/deploy"},
	{name: "kustomize", pkg: "sigs.k8s.io/kustomize/kustomize/v5", duration: "about 10 s", module: "../../tools/deploy"},
	{name: "e2e.test", pkg: "github.com/sallyport-io/sallyport/test/conformance/suite", duration: "about 2 min", module: "../conformance/suite", source: ".", versioned: true},
}

// buildTags are conformance, for packages of ours that are built here and nowhere else, and
// grpcnotrace, because ../../Makefile has it: so, and as the go.mod here has the versions of the
// main module, what both have of Kubernetes is compiled once.
const buildTags = "conformance,grpcnotrace"

// basic is what a webhook needs: the API server, its store, and a client.
var basic = []string{"etcd", "kube-apiserver", "kubectl"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	dir, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

func run(ctx context.Context, args []string) (string, error) {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	wantedRelease := flags.String("kubernetes", "", "release of Kubernetes, as 1.36.5 or 1.36")
	index := flags.String("index", publishedIndex, "what lists the binaries that can be downloaded")
	plan := flags.Bool("plan", false, "only say what would be done")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	mode := os.Getenv("SALLYPORT_CONTROLPLANE")
	if mode != "" && mode != "build" {
		return "", fmt.Errorf("SALLYPORT_CONTROLPLANE=%s: set it to build, or unset it to download what is published", mode)
	}
	names := flags.Args()
	if len(names) == 0 {
		names = basic
	}
	known, err := releases(".")
	if err != nil {
		return "", err
	}
	of, err := choose(known, *wantedRelease)
	if err != nil {
		return "", err
	}
	var wanted []component
	for _, name := range names {
		i := slices.IndexFunc(components, func(c component) bool { return c.name == name })
		if i < 0 {
			return "", fmt.Errorf("unknown component %q; choose from %s", name, componentNames())
		}
		wanted = append(wanted, components[i])
	}

	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if *wantedRelease != "" {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS=%s and Kubernetes %s: unset one of the two", dir, *wantedRelease)
		}
		for _, c := range wanted {
			if !present(filepath.Join(dir, c.name)) {
				return "", fmt.Errorf("KUBEBUILDER_ASSETS=%s holds no %s; unset it to build one", dir, c.name)
			}
		}
		if *plan {
			return "control plane: the one in " + dir, nil
		}
		return dir, nil
	}

	dir, err := of.cacheDir()
	if err != nil {
		return "", err
	}
	targets := map[string]string{}
	var missing []component
	for _, c := range wanted {
		target, err := c.target(dir, of)
		if err != nil {
			return "", err
		}
		targets[c.name] = target
		if !inPlace(filepath.Join(dir, c.name), target) {
			missing = append(missing, c)
		}
	}
	if *plan {
		return describe(of, missing, mode), nil
	}
	if len(missing) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()

	// Another process may have put some into place while we waited for the lock.
	missing = slices.DeleteFunc(missing, func(c component) bool { return inPlace(filepath.Join(dir, c.name), targets[c.name]) })
	if mode != "build" && slices.ContainsFunc(missing, component.isPublished) {
		a, err := findArchive(ctx, *index, of, decideWithin)
		if err == nil {
			err = download(ctx, a, of, dir)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "Nothing to download (%v): building it.\n", err)
		} else {
			missing = slices.DeleteFunc(missing, component.isPublished)
		}
	}
	if len(missing) == 0 {
		return dir, nil
	}

	fmt.Fprintf(os.Stderr, "Building %d control plane component(s) of Kubernetes %s from Go modules, once; cached in %s\n", len(missing), of.version, dir)
	for len(missing) > 0 {
		together := []component{missing[0]}
		if missing[0].module == "" { // one command compiles what they share once, and links one while it compiles another
			together = slices.DeleteFunc(slices.Clone(missing), func(c component) bool { return c.module != "" })
		}
		missing = slices.DeleteFunc(missing, func(c component) bool { return slices.Contains(together, c) })
		if slices.ContainsFunc(together, func(c component) bool { return !present(targets[c.name]) }) {
			if err := build(ctx, together, of, targets); err != nil {
				return "", err
			}
		}
		for _, c := range together {
			if err := link(filepath.Join(dir, c.name), targets[c.name]); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
}

// output is how the go command names the binary: after the last part of the package's path
// that is no version.
func (c component) output() string {
	name := path.Base(c.pkg)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(c.pkg))
	}
	return name
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

func (c component) isPublished() bool { return slices.Contains(published, c.name) }

// describe says what happens to those that are missing.
func describe(of release, missing []component, mode string) string {
	plane := "control plane of Kubernetes " + of.version + ": "
	if len(missing) == 0 {
		return plane + "in the cache"
	}
	var times []string
	download := false
	for _, c := range missing {
		times = append(times, c.name+" "+c.duration)
		download = download || mode != "build" && c.isPublished()
	}
	built := "built once, on two cores " + strings.Join(times, ", ")
	if of.folder == "." { // and so has the versions of the main module
		built += "; less than half of that once sallyport is built, which shares packages"
	}
	if download {
		return plane + strings.Join(published, ", ") + " downloaded if they are published and the network has them; else " + built
	}
	return plane + built
}

// target is the file that the component is built to. One that a go.mod of its
// own pins has a cache folder of its own, so that neither is built again because
// the other's requirements changed.
func (c component) target(dir string, of release) (string, error) {
	if c.module == "" {
		return filepath.Join(dir, c.name), nil
	}
	mod, err := os.ReadFile(filepath.Join(c.module, c.modFile(of)))
	if err != nil {
		return "", fmt.Errorf("what pins %s (run this in its own folder): %w", c.name, err)
	}
	decides := string(mod)
	if c.source != "" {
		files, err := filepath.Glob(filepath.Join(c.module, c.source, "*.go"))
		if err != nil {
			return "", err
		}
		for _, file := range files { // in the order of their names
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			decides += string(text)
		}
	}
	base, err := cacheBase()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, c.name, key(c.name, decides), c.name), nil
}

// modFile is the file in the component's folder that pins it.
func (c component) modFile(of release) string {
	if c.module != "" && c.versioned && of.folder != "." {
		return "kubernetes-" + of.version + ".mod"
	}
	return "go.mod"
}

// inPlace tells whether path leads to the binary at target.
func inPlace(path, target string) bool {
	if path != target {
		if to, err := os.Readlink(path); err != nil || to != target {
			return false
		}
	}
	return present(target)
}

// link makes path lead to the binary at target, whatever it led to before.
func link(path, target string) error {
	if path == target {
		return nil
	}
	tmp := path + ".partial"
	_ = os.Remove(tmp)
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// ldflags strip the binaries and tell parts of Kubernetes their version, which the build
// script of Kubernetes would have done. Nobody else has the variables.
func ldflags(cs []component, of release) string {
	flags := []string{"-s", "-w"}
	if slices.ContainsFunc(cs, func(c component) bool { return c.versioned }) {
		major, minor, _ := strings.Cut(of.version, ".")
		minor, _, _ = strings.Cut(minor, ".")
		const version = "k8s.io/component-base/version."
		flags = append(flags,
			"-X "+version+"gitVersion=v"+of.version,
			"-X "+version+"gitMajor="+major,
			"-X "+version+"gitMinor="+minor,
			"-X "+version+"gitTreeState=clean",
		)
	}
	return strings.Join(flags, " ")
}

// build compiles components of one module and moves them into place only when they are whole.
func build(ctx context.Context, cs []component, of release, targets map[string]string) error {
	var names, times, pkgs []string
	for _, c := range cs {
		names, times, pkgs = append(names, c.name), append(times, c.duration), append(pkgs, c.pkg)
	}
	named := strings.Join(names, ", ")
	folder := filepath.Dir(targets[names[0]])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(folder, ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	args := []string{"build", "-trimpath", "-modfile", cs[0].modFile(of), "-tags", buildTags, "-ldflags", ldflags(cs, of), "-o", tmp + string(filepath.Separator)}
	cmd := exec.CommandContext(ctx, "go", append(args, pkgs...)...)
	cmd.Dir = cs[0].module
	if cmd.Dir == "" {
		cmd.Dir = of.folder
	}
	// Compilers collect garbage when they have 1 GiB, and no sooner, which saves a tenth of the CPU time.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOGC=off", "GOMEMLIMIT=1GiB")
	var stderr strings.Builder
	cmd.Stderr = &stderr

	fmt.Fprintf(os.Stderr, "%s (%s on two cores) ", named, strings.Join(times, ", "))
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprint(os.Stderr, ".")
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("building %s: interrupted", named)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, " failed")
				return fmt.Errorf("building %s: %w\n%s", named, err, stderr.String())
			}
			fmt.Fprintf(os.Stderr, " done in %s\n", time.Since(started).Round(time.Second))
			for _, c := range cs {
				if err := os.Rename(filepath.Join(tmp, c.output()), targets[c.name]); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// cacheBase is an absolute path, because components are built in other folders.
func cacheBase() (string, error) {
	if base := os.Getenv("SALLYPORT_CACHE"); base != "" {
		return filepath.Abs(base)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set SALLYPORT_CACHE): %w", err)
	}
	return filepath.Join(user, "sallyport"), nil
}

// key names a cache folder by all that decides what the binaries in it are: the
// pinned modules, sources of our own, the toolchain and the platform.
func key(label, decides string) string {
	sum := sha256.Sum256([]byte(decides))
	return strings.Join([]string{label, runtime.GOOS, runtime.GOARCH, runtime.Version(), hex.EncodeToString(sum[:4])}, "-")
}

// lock keeps two builds from writing the same files; the kernel drops it when
// the process ends, however it ends.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Fprintln(os.Stderr, "Waiting for another build of the control plane to finish…")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return func() { _ = f.Close() }, nil
}

func present(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func componentNames() string {
	names := make([]string, 0, len(components))
	for _, c := range components {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
