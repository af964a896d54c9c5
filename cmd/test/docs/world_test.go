// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/test/docs/programs"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// patience is how long anything may take that needs no more than a moment.
const patience = 4 * time.Minute

// A world is where the commands of the documents run: a folder with what the repository
// has of files that are installed, the files of testdata/world, an API server, and in it
// Sallyport as the chart installs it. No pods run on an API server alone: the server is a
// process here, which the API server calls by a URL.
type world struct {
	folder   string
	programs string // the folder of programs
	config   *rest.Config
	client   client.Client
	env      []string

	state    string      // of the cluster; "" if it is not known
	broken   bool        // it could not be brought into a state
	server   *lab.Server // nil if none runs
	pidFile  string
	problems string // the file of what programs note
}

// States of the cluster that a block can ask for.
const (
	installed        = "installed" // unless it asks for another one
	nothingInstalled = "nothing installed"
	continued        = "continued" // what the block before has left; installed if that has changed nothing for good
)

func newWorld(t *testing.T) *world {
	t.Helper()
	folder := t.TempDir()
	w := &world{
		folder: filepath.Join(folder, "world"), programs: filepath.Join(folder, "programs"),
		pidFile: filepath.Join(folder, "server"), problems: filepath.Join(folder, "problems"),
		state: nothingInstalled,
	}
	for _, name := range []string{"charts", "config", "examples"} {
		if err := os.CopyFS(filepath.Join(w.folder, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(w.folder, os.DirFS(filepath.Join("testdata", "world"))); err != nil {
		t.Fatal(err)
	}
	commands := lab.Commands(t, "cmd/test/docs/docsprogram", "cmd/sallyport", "examples/cloud-controller-manager", "examples/crontab")
	w.linkPrograms(t, commands["docsprogram"])

	w.config = sallyporttest.StartAPIServer(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"))
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(os.Environ(),
		"KUBECONFIG="+sallyporttest.Kubeconfig(t, w.config), "HOME="+folder,
		"PATH="+w.programs+string(os.PathListSeparator)+os.Getenv("PATH"),
		programs.ProblemsVariable+"="+w.problems, programs.ServerVariable+"="+w.pidFile, programs.RootVariable+"="+top,
	)
	for name, path := range w.realPrograms(t, commands) {
		w.env = append(w.env, programs.RealVariable(name)+"="+path)
	}
	if err := os.WriteFile(filepath.Join(w.folder, "ca.crt"), w.config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	w.client = newClient(t, w.config)
	var objects []client.Object
	for _, name := range []string{"sallyport-system", "team-a", "kubeflow", "crontab-system"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, namespace := range []string{"default", "team-a"} { // where pods are created
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}})
	}
	for _, object := range objects {
		if err := w.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// linkPrograms makes the folder of programs, each of which is that one.
func (w *world) linkPrograms(t *testing.T, program string) {
	t.Helper()
	link := func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs.Names() {
		link(filepath.Join(w.programs, name))
	}
	for _, name := range []string{"sallyport", "faults", "bench"} { // what make builds
		link(filepath.Join(w.folder, "bin", name))
	}
	for _, name := range programs.Others { // found only where nothing is run
		link(filepath.Join(w.programs+"-others", name))
	}
}

// realPrograms adds to the paths of commands of this repository, by name; openssl may be missing.
func (w *world) realPrograms(t *testing.T, commands map[string]string) map[string]string {
	t.Helper()
	paths := maps.Clone(commands)
	paths["kubectl-sallyport"] = paths["sallyport"]
	paths["kubectl"] = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	for _, name := range []string{"helm", "kustomize"} {
		paths[name] = lab.Binary(t, name)
	}
	for _, name := range []string{"grep", "openssl"} {
		paths[name], _ = exec.LookPath(name)
	}
	return paths
}

// shell runs commands in the world, and returns what they print, and their status.
func (w *world) shell(t *testing.T, commands string, env ...string) (out string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", commands)
	cmd.WaitDelay = time.Second // if somebody else holds the pipe
	cmd.Dir, cmd.Env = w.folder, slices.Concat(w.env, env)
	data, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%s\nnot done within %s: %v\n%s", commands, patience, err, data)
	}
	return string(data), cmd.ProcessState.ExitCode()
}

// sh runs commands that have to succeed.
func (w *world) sh(t *testing.T, commands string) string {
	t.Helper()
	out, status := w.shell(t, commands)
	if status != 0 {
		t.Fatalf("%s\nstatus %d\n%s", commands, status, out)
	}
	return out
}

// be brings the cluster into a state.
func (w *world) be(t *testing.T, state string) {
	t.Helper()
	if w.broken {
		t.Fatal("the cluster could not be brought into a state before")
	}
	if state == continued {
		if w.state == "" {
			return
		}
		state = installed
	}
	was := w.state
	w.state, w.broken = "", true
	if was != state {
		w.stop(t)
		w.reset(t)
		if state == installed {
			w.install(t)
		}
	}
	switch {
	case state != installed:
	case w.server == nil || w.server.HasEnded():
		w.serve(t)
	default:
		w.awaitRegistered(t) // a block may have deleted what the server writes again
	}
	w.state, w.broken = state, false
}

func (w *world) install(t *testing.T) {
	t.Helper()
	w.sh(t, "helm install sallyport charts/sallyport --namespace sallyport-system --set image.repository=registry.example.com/sallyport --set image.tag=dev")
	// Otherwise the server says, rightly, that there are no PodDefaults to be read.
	lab.Eventually(t.Context(), t, patience, "PodDefaults to be served", func(ctx context.Context) (bool, error) {
		err := w.readPodDefaults(ctx)
		return err == nil, err
	})
}

// serve starts the server with the rights of its service account, and waits until it has
// registered itself.
func (w *world) serve(t *testing.T) {
	t.Helper()
	user := rest.CopyConfig(w.config)
	user.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:sallyport-system:sallyport", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	folder, err := os.MkdirTemp(filepath.Dir(w.folder), "server-") // its log outlives this block
	if err != nil {
		t.Fatal(err)
	}
	w.server, err = lab.Serve(folder, lab.Serving{Binary: w.real("sallyport"), Kubeconfig: sallyporttest.Kubeconfig(t, user), ByURL: true},
		"--authority-secret", "sallyport-system/sallyport-authority",
		lab.Set("certificate.caPropagation", "1s"), lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "500ms"),
		lab.Set("webhooks.poddefault.guard", "Fail"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.pidFile, fmt.Append(nil, w.server.PID()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.server.AwaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	w.awaitRegistered(t)
	if text := w.server.Log(); strings.Contains(text, "level=WARN") || strings.Contains(text, "level=ERROR") {
		t.Errorf("a normal start warns:\n%s", text)
	}
}

func (w *world) awaitRegistered(t *testing.T) {
	t.Helper()
	lab.Eventually(t.Context(), t, patience, "the server to be registered", func(ctx context.Context) (bool, error) {
		name := client.ObjectKey{Name: "sallyport"}
		err := errors.Join(w.client.Get(ctx, name, &admissionregistrationv1.MutatingWebhookConfiguration{}),
			w.client.Get(ctx, name, &admissionregistrationv1.ValidatingWebhookConfiguration{}))
		return err == nil, err
	})
}

func (w *world) real(name string) string {
	variable := programs.RealVariable(name) + "="
	for _, entry := range w.env {
		if path, ok := strings.CutPrefix(entry, variable); ok {
			return path
		}
	}
	return ""
}

// stop ends the server, if there is one that has not ended.
func (w *world) stop(t *testing.T) {
	t.Helper()
	if w.server == nil {
		return
	}
	_ = w.server.Stop(time.Minute) // a document may have ended it
	if t.Failed() {
		t.Logf("log of the server:\n%s", w.server.Log())
	}
	w.server = nil
}
