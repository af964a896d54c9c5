// SPDX-License-Identifier: Apache-2.0

package deceiving

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A verdict is what a command says of an object.
type verdict string

const (
	fine    verdict = "fine"
	noted   verdict = "noted"   // fine, with a note about what is not known
	denies  verdict = "denies"  // the object would be refused
	unknown verdict = "unknown" // it depends on what is not known, with a status of its own
	failed  verdict = "failed"  // the command could not do its work, and says so with a status
)

var verdicts = []verdict{fine, noted, unknown, failed, denies}

// wrong tells whether a verdict contradicts the API server.
func (v verdict) wrong(refused bool) bool {
	if refused {
		return v == fine
	}
	return v == denies || v == failed
}

// openNote is what commands say of any pod if they read no cluster. Only a case that has nothing else to go by, and
// says so, takes it for a note.
var openNote = regexp.MustCompile(`(?m)^.*not decided without a cluster: .*$`)

var (
	saysUnknown  = regexp.MustCompile(`(?i)\bunknown\b|not known|not decided|cannot be decided|could not be decided`)
	unknownField = regexp.MustCompile(`(?i)unknown field`)
)

// judge reads the verdict from an exit status and what was printed.
func judge(status int, output string, denied int, note string) verdict {
	if note == "" || !strings.Contains(openNote.FindString(output), note) {
		output = openNote.ReplaceAllString(output, "")
	}
	open := saysUnknown.MatchString(unknownField.ReplaceAllString(output, ""))
	switch {
	case status == denied:
		return denies
	case status == 0 && open:
		return noted
	case status == 0:
		return fine
	case open:
		return unknown
	default:
		return failed
	}
}

// results are those of the cases of a kind.
type results struct {
	sync.Mutex
	kind  string
	known map[string]bool // lines of known.txt about this kind
	seen  map[string]bool // those that were found again
	asked map[string]bool // prefixes of known lines: cases and tools that were asked
	count map[string]map[bool]map[verdict]int
}

func newResults(t *testing.T, kind string, all []*deceivingCase) *results {
	t.Helper()
	r := &results{kind: kind, known: map[string]bool{}, seen: map[string]bool{}, asked: map[string]bool{}, count: map[string]map[bool]map[verdict]int{}}
	text, err := os.ReadFile("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || !strings.HasPrefix(line, kind+"/") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(line, kind+"/"), " ")
		if !slices.ContainsFunc(all, func(c *deceivingCase) bool { return c.name == name }) {
			t.Errorf("known.txt: there is no case %s/%s", kind, name)
		}
		r.known[line] = true
	}
	return r
}

// add counts a verdict, and fails the test if it contradicts the API server and is not known to.
func (r *results) add(t *testing.T, c *deceivingCase, tool string, refusal error, v verdict, output string) {
	t.Helper()
	r.Lock()
	defer r.Unlock()
	refused := refusal != nil
	if r.count[tool] == nil {
		r.count[tool] = map[bool]map[verdict]int{true: {}, false: {}}
	}
	r.count[tool][refused][v]++
	prefix := c.kind + "/" + c.name + " " + tool + ": "
	r.asked[prefix] = true
	if !v.wrong(refused) {
		return
	}
	line := prefix + string(v)
	if r.known[line] {
		r.seen[line] = true
		return
	}
	does := "accepts"
	if refused {
		does = "refuses: " + refusal.Error()
	}
	t.Errorf("%s\nbut the API server %s\n%s says:\n%s", line, does, tool, output)
}

// end prints the table, and fails the test if something is listed as known that is not so any more.
func (r *results) end(t *testing.T) {
	t.Helper()
	for _, line := range slices.Sorted(maps.Keys(r.known)) {
		name, _, _ := strings.Cut(line, ": ")
		if r.asked[name+": "] && !r.seen[line] {
			t.Errorf("known.txt: it is not so any more, remove the line: %s", line)
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-28s %-8s", r.kind, "server")
	for _, v := range verdicts {
		fmt.Fprintf(&table, " %8s", v)
	}
	table.WriteString("    wrong\n")
	for _, tool := range slices.SortedFunc(maps.Keys(r.count), cmp.Compare[string]) {
		for _, refused := range []bool{true, false} {
			does, wrong := "accepts", 0
			if refused {
				does = "refuses"
			}
			fmt.Fprintf(&table, "%-28s %-8s", tool, does)
			for _, v := range verdicts {
				n := r.count[tool][refused][v]
				fmt.Fprintf(&table, " %8d", n)
				if v.wrong(refused) {
					wrong += n
				}
			}
			fmt.Fprintf(&table, " %8d\n", wrong)
		}
	}
	t.Log(table.String())
}
