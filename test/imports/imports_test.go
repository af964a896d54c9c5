// SPDX-License-Identifier: Apache-2.0

// Package imports tests who may import whom. The table is the one of
// CONTRIBUTING.md; a package that is not in it may import anything of ours.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/sallyport-io/sallyport"

// allowed says for each package, or folder of packages (with a final slash), which
// of ours it may import.
var allowed = map[string][]string{
	"":            {"admission", "conversion", "jsonpatch", "internal/wire", "serving", "certificate", "registration", "internal/authority", "internal/cached", "internal/cli", "internal/cluster", "internal/controllers", "internal/hosting", "internal/install", "internal/logging", "internal/memory", "internal/roundtrip", "internal/storagemigration", "internal/typed"}, // package sallyport
	"jsonpatch":   {"internal/rawjson"},
	"conversion":  {"jsonpatch", "internal/decode", "internal/rawjson", "internal/rawobject"},
	"certificate": {"internal/follow"},
	"serving":     {"internal/follow"},
	// Only who may know the API server's own machinery takes it: cmd/sallyport and cloud.
	"internal/delegated": {"serving"},
	"internal/tracing":   {},
	"api/":               {"api/"},
	"admission":          {"jsonpatch", "internal/decode", "internal/rawjson"},
	"internal/wire":      {"admission", "conversion", "jsonpatch", "internal/rawjson", "internal/rawobject"},
	"internal/decode":    {"internal/rawjson"},
	"internal/rawjson":   {},
	"registration":       {"admission", "conversion", "internal/crdclient", "internal/foreign", "internal/selectors"},
	"internal/foreign":   {"internal/selectors"},
	"lint":               {"admission", "conversion", "internal/foreign", "internal/privatepath", "internal/selectors"},
	"sallyporttest":      {"admission", "conversion", "jsonpatch", "internal/cached", "internal/freeport", "internal/wire", "internal/replay"},
	// No controller-runtime below it: see TestCloudKeepsToTheStackOfControllerManagers.
	"internal/hosting": {"admission", "conversion", "internal/wire", "serving", "certificate", "registration", "internal/cli", "internal/crdclient", "internal/selectors", "internal/privatepath"},
	// Next to it, with controller-runtime.
	"internal/controllers": {"serving", "internal/cached", "internal/hosting"},
	"internal/cached":      {"internal/hosting"},
	"internal/typed":       {"admission"},
	"internal/scaffold":    {"admission", "internal/cli"},
	"internal/install":     {"admission", "conversion", "registration", "serving", "certificate", "internal/hosting", "internal/cli", "internal/authority", "internal/cluster", "internal/manifest"},
	// Reading of clusters and files, for people.
	"internal/recording":   {"admission", "api/", "jsonpatch"},
	"internal/callmetrics": {"internal/cli", "internal/manifest"},
	"internal/report":      {"internal/cli", "internal/manifest"},
	"internal/resources":   {"api/", "lint", "internal/manifest"},
	"internal/inspect":     {"lint", "internal/report", "internal/cluster", "internal/foreign", "internal/resources", "internal/manifest", "internal/workload", "internal/cli"},
	"internal/commands":    {"admission", "lint", "internal/authority", "internal/cli", "internal/cluster", "internal/doctor", "internal/dryrun", "internal/fieldcheck", "internal/inspect", "internal/manifest", "internal/replay/review", "internal/report", "internal/resources"},
	"commands":             {"admission", "internal/authority", "internal/cli", "internal/cluster", "internal/commands", "internal/doctor", "internal/install", "internal/replay/review"},
	"internal/doctor":      {"certificate", "lint", "internal/authority", "internal/callmetrics", "internal/cli", "internal/cluster", "internal/foreign", "internal/hosting", "internal/inspect", "internal/manifest", "internal/portforward", "internal/privatepath"},
	"internal/console":     {"admission", "api/", "certificate", "lint", "serving", "internal/callmetrics", "internal/cli", "internal/cluster", "internal/doctor", "internal/fieldcheck", "internal/injection", "internal/inspect", "internal/manifest", "internal/replay/review", "internal/report", "internal/resources", "internal/webhooks/", "internal/workload"},
	"internal/dryrun":      {"admission", "jsonpatch", "internal/webhooks/poddefault"},
	"internal/authority":   {"certificate", "internal/hosting", "internal/cluster", "internal/manifest", "internal/cli"},
	"internal/manifest":    {},
	"internal/privatepath": {},
	"internal/freeport":    {},
	"internal/logging":     {"internal/cli"},
	"internal/memory":      {},
	"internal/rawobject":   {},
	"internal/roundtrip":   {"conversion", "internal/cli", "internal/cluster", "internal/crdclient", "internal/manifest"},
	"internal/portforward": {},
	// What replicas have recorded, apart from the recorder in them.
	"internal/recording/fetch": {"internal/recording", "internal/cluster", "internal/manifest", "internal/portforward"},
	"internal/crdclient":       {},
	// The API server asks for the conversions.
	"internal/storagemigration": {"internal/crdclient"},
	"test/golden":               {},
	"test/specification":        {"api/"},
	"test/lab":                  {"internal/freeport"}, // also tests of packages that it could need import it

	"internal/replay": {"admission", "conversion", "jsonpatch", "internal/wire"},
	// What decides about pods beside webhooks, from objects alone.
	"internal/replay/plugins": {"admission", "internal/manifest", "internal/replay/chain/limitranger"},
	"internal/workload":       {"jsonpatch", "internal/rawjson", "internal/manifest"},
	"internal/store":          {"internal/decode", "internal/rawjson"},
	"internal/webhooks/":      {"admission", "jsonpatch", "internal/rawjson", "api/", "internal/store", "internal/webhooks/internal/"},
	// What the webhooks' tests share replays requests.
	"internal/webhooks/internal/cases": {"admission", "jsonpatch", "internal/rawjson", "test/golden", "internal/replay"},
	"internal/webhooks/poddefault":     {"admission", "jsonpatch", "internal/rawjson", "api/", "internal/store", "internal/webhooks/internal/", "internal/webhooks/poddefault/revision"},
	// What belongs to one webhook, and need not be there for it to work.
	"internal/webhooks/poddefault/": {
		"admission", "jsonpatch", "internal/rawjson", "api/", "internal/store", "internal/webhooks/poddefault", "internal/webhooks/internal/", "internal/webhooks/poddefault/revision",
	},
	"internal/webhooks/poddefault/revision": {"api/", "internal/store"},
	// Nor below this one.
	"cloud": {
		"admission", "serving", "internal/delegated", "certificate", "registration", "internal/webhooks/persistentvolumelabel", "internal/cli", "internal/hosting",
	},
	// Package sallyport itself is not of the form module/folder, and always allowed.
	"controllerruntime": {"admission", "conversion", "jsonpatch", "internal/wire", "serving", "certificate", "registration", "internal/hosting"},
}

// light are packages that a webhook author can take without the stacks of others,
// named by prefixes of what must not be in their import closure.
var light = []string{"jsonpatch", "admission", "conversion", "internal/wire", "serving"}

// interfaces is a package of controller-runtime that holds two interfaces and imports
// nothing but apimachinery.
const interfaces = "sigs.k8s.io/controller-runtime/pkg/conversion"

var heavy = []string{
	"sigs.k8s.io/controller-runtime", "k8s.io/client-go/informers", "k8s.io/client-go/tools/cache",
	"k8s.io/apiserver", "k8s.io/cloud-provider",
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportTable(t *testing.T) {
	for _, pkg := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(pkg.ImportPath, module), "/")
		may, ok := find(name)
		if !ok {
			continue
		}
		for _, imported := range pkg.Imports {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && !covers(may, ours) {
				t.Errorf("%s imports %s; it may import %v", name, ours, may)
			}
		}
	}
}

func TestLightPackagesStayLight(t *testing.T) {
	seen := 0
	for _, pkg := range list(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module+"/")
		if !slices.Contains(light, name) {
			continue
		}
		seen++
		for _, dep := range pkg.Deps {
			for _, prefix := range heavy {
				if dep != interfaces && (dep == prefix || strings.HasPrefix(dep, prefix+"/")) {
					t.Errorf("%s needs %s", name, dep)
				}
			}
		}
	}
	if seen != len(light) {
		t.Errorf("found %d of %v", seen, light)
	}
}

// KEP-2699 wants the controller managers' own stack: who adopts package cloud, and so
// internal/hosting, gets no other. And nobody else gets k8s.io/cloud-provider.
func TestCloudKeepsToTheStackOfControllerManagers(t *testing.T) {
	seen := false
	for _, pkg := range list(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module+"/")
		keeps := name == "cloud" || name == "internal/hosting"
		if name == "cloud" {
			seen = true
		}
		mayCloud := name == "cloud" || strings.HasPrefix(name, "examples/cloud-controller-manager") || strings.HasPrefix(name, "test/")
		for _, dep := range pkg.Deps {
			switch {
			case keeps && dep != interfaces && strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime/"):
				t.Errorf("%s needs %s", name, dep)
			case !mayCloud && strings.HasPrefix(dep, "k8s.io/cloud-provider"):
				t.Errorf("%s needs %s", name, dep)
			}
		}
	}
	if !seen {
		t.Error("there is no package cloud")
	}
}

// find returns what the entry says that names the package most closely.
func find(name string) (may []string, ok bool) {
	closest := -1
	for key, entry := range allowed {
		if covers([]string{key}, name) && len(key) > closest {
			closest, may, ok = len(key), entry, true
		}
	}
	return may, ok
}

func covers(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == name || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry)
	})
}

func list(t *testing.T) []goPackage {
	t.Helper()
	packages, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// listed asks the go command, which knows what is built, once for all tests. It keeps the result
// of a test until something changes that the test itself has read, so every folder is read here.
var listed = sync.OnceValues(func() ([]goPackage, error) {
	err := filepath.WalkDir("../..", func(_ string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
	}
	if len(packages) < 10 {
		return nil, fmt.Errorf("go list found %d packages", len(packages))
	}
	return packages, nil
})
