// SPDX-License-Identifier: Apache-2.0

package deceiving

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/sallyport-io/sallyport/test/lab"
)

var every = flag.Int("every", 10, "one in how many cases of a kind is run, chosen by its name; 1 for all")

// A deceivingCase is a txtar file below testdata. Its comment is a sentence, followed by
// lines of the form KEY: VALUE.
type deceivingCase struct {
	kind, name string
	set        map[string]string
	files      map[string]string
}

// keys are those of all kinds of cases.
var keys = []string{
	"server",    // what the API server does: accepts or refuses. It is checked, so that a case stays the one it was meant to be
	"because",   // part of the API server's message
	"resource",  // of the request, as kubectl accepts it; pods if absent
	"operation", // CREATE if absent
	"user", "groups", "manager",
	"namespace", // missing or terminating, if it is not just there
	"account",   // none, if the namespace has no ServiceAccount
	"defaults",  // early, if the PodDefaults are stored before the server that would refuse them runs
	"alone",     // true, if commands that read no cluster do not know the namespace
	"dry",       // true, if the request is a dry run
	"note",      // what commands that read no cluster say they have not decided, because no file can
	"tools",     // those that are asked, if not all of the kind
	"since",     // the N of Kubernetes 1.N that does first what the case says
}

// cases returns the cases of a kind, and which of them are to be run: all, or at least one. Those that
// a newer Kubernetes is needed for are named.
func cases(t *testing.T, kind string) (all []*deceivingCase, chosen []*deceivingCase) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", kind, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		all = append(all, read(t, kind, path))
	}
	minor := lab.KubernetesMinor(t)
	later := map[int][]string{}
	for _, c := range all {
		if since := c.since(t); since > minor {
			later[since] = append(later[since], c.name)
		} else {
			chosen = append(chosen, c)
		}
	}
	for _, since := range slices.Sorted(maps.Keys(later)) {
		t.Logf("%d of %d cases need Kubernetes 1.%d, and this is 1.%d:\n%s", len(later[since]), len(all), since, minor, strings.Join(later[since], "\n"))
	}
	if *every <= 1 {
		return all, chosen
	}
	byHash := chosen
	slices.SortFunc(byHash, func(a, b *deceivingCase) int {
		return cmp.Or(cmp.Compare(hash(a.name), hash(b.name)), strings.Compare(a.name, b.name))
	})
	return all, byHash[:max(1, (len(byHash)+*every-1) / *every)]
}

// since returns the N of Kubernetes 1.N that does first what the case says. Mutating policies are served by
// default since 1.36.
func (c *deceivingCase) since(t *testing.T) int {
	t.Helper()
	since := 0
	if strings.Contains(c.files["policies.yaml"]+c.files["object.yaml"], "kind: MutatingAdmissionPolicy") {
		since = mutatingPolicies
	}
	if value := c.set["since"]; value != "" {
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%s: since: %v", c.name, err)
		}
		since = max(since, n)
	}
	return since
}

const mutatingPolicies = 36

func hash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

func read(t *testing.T, kind, path string) *deceivingCase {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &deceivingCase{kind, strings.TrimSuffix(filepath.Base(path), ".txtar"), map[string]string{}, map[string]string{}}
	for line := range strings.Lines(string(archive.Comment)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && slices.Contains(keys, key) {
			c.set[key] = value
		}
	}
	for _, file := range archive.Files {
		c.files[file.Name] = string(file.Data)
	}
	if said := c.set["server"]; said != "accepts" && said != "refuses" {
		t.Fatalf("%s: the comment needs a line server: accepts, or server: refuses", path)
	}
	return c
}

// id is the name of the case's namespace and of what it has that is in none.
func (c *deceivingCase) id() string {
	short := c.name
	if len(short) > 40 {
		short = short[:40]
	}
	return fmt.Sprintf("%s-%08x", strings.Trim(short, "-"), hash(c.kind+c.name))
}

// long stands for a text of that length.
var long = regexp.MustCompile(`\$\{([0-9]+)KiB\}`)

// expand writes a file with the placeholders replaced, and returns its path; "" if there is none.
func (c *deceivingCase) expand(t *testing.T, folder, name string, replace ...string) string {
	t.Helper()
	text, ok := c.files[name]
	if !ok {
		return ""
	}
	path := filepath.Join(folder, name)
	text = strings.NewReplacer(append([]string{"${id}", c.id()}, replace...)...).Replace(text)
	text = long.ReplaceAllStringFunc(text, func(placeholder string) string {
		n, err := strconv.Atoi(long.FindStringSubmatch(placeholder)[1])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Repeat("x", n<<10)
	})
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
