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
	"":            {"admission", "conversion", "jsonpatch", "internal/wire", "serving", "certificate", "registration", "internal/install/authority", "internal/hosting/cached", "internal/cli", "internal/kube/cluster", "internal/hosting/controllers", "internal/hosting", "internal/install", "internal/hosting/logging", "internal/hosting/memory", "internal/install/roundtrip", "internal/install/storagemigration", "internal/hosting/typed"}, // package sallyport
	"jsonpatch":   {"internal/json/rawjson"},
	"conversion":  {"jsonpatch", "internal/json/decode", "internal/json/rawjson", "internal/json/rawobject"},
	"certificate": {"internal/follow"},
	"serving":     {"internal/follow"},
	// Only who may know the API server's own machinery takes it: cmd/sallyport and cloud.
	"internal/hosting/delegated": {"serving"},
	"internal/hosting/tracing":   {},
	"api/":                       {"api/"},
	"admission":                  {"jsonpatch", "internal/json/decode", "internal/json/rawjson"},
	"internal/wire":              {"admission", "conversion", "jsonpatch", "internal/json/rawjson", "internal/json/rawobject"},
	"internal/json/decode":       {"internal/json/rawjson"},
	"internal/json/rawjson":      {},
	"registration":               {"admission", "conversion", "internal/kube/crdclient", "internal/kube/foreign", "internal/kube/selectors"},
	"internal/kube/foreign":      {"internal/kube/selectors"},
	"lint":                       {"admission", "conversion", "internal/kube/foreign", "internal/kube/privatepath", "internal/kube/selectors"},
	"sallyporttest":              {"admission", "conversion", "jsonpatch", "internal/hosting/cached", "internal/hosting/freeport", "internal/wire", "internal/wire/replay"},
	// No controller-runtime below it: see TestCloudKeepsToTheStackOfControllerManagers.
	"internal/hosting": {"admission", "conversion", "internal/wire", "serving", "certificate", "registration", "internal/cli", "internal/kube/crdclient", "internal/kube/selectors", "internal/kube/privatepath"},
	// Next to it, with controller-runtime.
	"internal/hosting/controllers":  {"serving", "internal/hosting/cached", "internal/hosting"},
	"internal/hosting/cached":       {"internal/hosting"},
	"internal/hosting/typed":        {"admission"},
	"cmd/internal/install/scaffold": {"admission", "internal/cli"},
	"internal/install":              {"admission", "conversion", "registration", "serving", "certificate", "internal/hosting", "internal/cli", "internal/install/authority", "internal/kube/cluster", "internal/kube/manifest"},
	// Reading of clusters and files, for people.
	"cmd/internal/serve/recording":   {"admission", "api/", "jsonpatch"},
	"cmd/internal/live/callmetrics":  {"internal/cli", "internal/kube/manifest"},
	"cmd/internal/offline/report":    {"internal/cli", "internal/kube/manifest"},
	"cmd/internal/offline/resources": {"api/", "lint", "internal/kube/manifest"},
	"cmd/internal/offline/inspect":   {"lint", "cmd/internal/offline/report", "internal/kube/cluster", "internal/kube/foreign", "cmd/internal/offline/resources", "internal/kube/manifest", "internal/kube/workload", "internal/cli"},
	"cmd/internal/commands":          {"admission", "lint", "internal/install/authority", "internal/cli", "internal/kube/cluster", "cmd/internal/live/doctor", "cmd/internal/offline/dryrun", "cmd/internal/offline/fieldcheck", "cmd/internal/offline/inspect", "internal/kube/manifest", "cmd/internal/offline/review", "cmd/internal/offline/report", "cmd/internal/offline/resources"},
	"commands":                       {"admission", "internal/install/authority", "internal/cli", "internal/kube/cluster", "cmd/internal/commands", "cmd/internal/live/doctor", "internal/install", "cmd/internal/offline/review"},
	"cmd/internal/live/doctor":       {"certificate", "lint", "internal/install/authority", "cmd/internal/live/callmetrics", "internal/cli", "internal/kube/cluster", "internal/kube/foreign", "internal/hosting", "cmd/internal/offline/inspect", "internal/kube/manifest", "cmd/internal/live/portforward", "internal/kube/privatepath"},
	"cmd/internal/live/console":      {"admission", "api/", "certificate", "lint", "serving", "cmd/internal/live/callmetrics", "internal/cli", "internal/kube/cluster", "cmd/internal/live/doctor", "cmd/internal/offline/fieldcheck", "cmd/internal/live/injection", "cmd/internal/offline/inspect", "internal/kube/manifest", "cmd/internal/offline/review", "cmd/internal/offline/report", "cmd/internal/offline/resources", "cmd/internal/webhooks/", "internal/kube/workload"},
	"cmd/internal/offline/dryrun":    {"admission", "jsonpatch", "cmd/internal/poddefault"},
	"internal/install/authority":     {"certificate", "internal/hosting", "internal/kube/cluster", "internal/kube/manifest", "internal/cli"},
	"internal/kube/manifest":         {},
	"internal/kube/privatepath":      {},
	"internal/hosting/freeport":      {},
	"internal/hosting/logging":       {"internal/cli"},
	"internal/hosting/memory":        {},
	"internal/json/rawobject":        {},
	"internal/install/roundtrip":     {"conversion", "internal/cli", "internal/kube/cluster", "internal/kube/crdclient", "internal/kube/manifest"},
	"cmd/internal/live/portforward":  {},
	// What replicas have recorded, apart from the recorder in them.
	"cmd/internal/live/fetch": {"cmd/internal/serve/recording", "internal/kube/cluster", "internal/kube/manifest", "cmd/internal/live/portforward"},
	"internal/kube/crdclient": {},
	// The API server asks for the conversions.
	"internal/install/storagemigration": {"internal/kube/crdclient"},
	"test/golden":                       {},
	"cmd/test/specification":            {"api/"},
	"test/lab":                          {"internal/hosting/freeport"}, // also tests of packages that it could need import it

	"internal/wire/replay": {"admission", "conversion", "jsonpatch", "internal/wire"},
	// What decides about pods beside webhooks, from objects alone.
	"cmd/internal/offline/plugins": {"admission", "internal/kube/manifest", "cmd/internal/offline/chain/limitranger"},
	"internal/kube/workload":       {"jsonpatch", "internal/json/rawjson", "internal/kube/manifest"},
	"internal/store":               {"internal/json/decode", "internal/json/rawjson"},
	"cmd/internal/webhooks/":       {"admission", "jsonpatch", "internal/json/rawjson", "api/", "internal/store", "cmd/internal/webhooks/internal/"},
	// What the webhooks' tests share replays requests.
	"test/cases":              {"admission", "jsonpatch", "internal/json/rawjson", "test/golden", "internal/wire/replay"},
	"cmd/internal/poddefault": {"admission", "jsonpatch", "internal/json/rawjson", "api/", "internal/store", "cmd/internal/webhooks/internal/", "cmd/internal/poddefault/revision"},
	// What belongs to one webhook, and need not be there for it to work.
	"cmd/internal/poddefault/": {
		"admission", "jsonpatch", "internal/json/rawjson", "api/", "internal/store", "cmd/internal/poddefault", "cmd/internal/webhooks/internal/", "cmd/internal/poddefault/revision",
	},
	"cmd/internal/poddefault/revision": {"api/", "internal/store"},
	// Nor below this one.
	"cloud": {
		"admission", "serving", "internal/hosting/delegated", "certificate", "registration", "internal/persistentvolumelabel", "internal/cli", "internal/hosting",
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
