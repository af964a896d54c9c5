// SPDX-License-Identifier: Apache-2.0

// Command bench measures what an admission review costs, against a real API
// server, and says whether the limits the project sets itself hold.
//
// Usage, from the repository root, with KUBEBUILDER_ASSETS naming the folder of
// etcd and kube-apiserver (`make bench` does both):
//
//	go run ./cmd/test/bench [-json] [-quick] [-only PART] [-out FILE] [-sallyport FILE]
//	go run ./cmd/test/bench -compare OLD.json NEW.json
//	go run ./cmd/test/bench -capture
//
// # Method
//
// Machines differ and ratios hold, so servers take turns in one run:
//
//   - floor: the cheapest TLS server that reads the review and answers a canned
//     allow; the unit of all ratios;
//   - controller-runtime: its own webhook server with a typed defaulter that
//     makes the same injection, the usual way to write such a webhook;
//   - sallyport: the real `sallyport serve`, with the real API server as the
//     source of its PodDefaults.
//
// For what a webhook author writes, a typed mutator and a typed validator, sallyport's
// place is taken by "library", an application of three webhooks whose functions
// controller-runtime has as well. The policies are sallyport's own, against the floor
// alone.
//
// Each is a process of its own. Each gets the same recorded reviews (testdata/,
// byte for byte what kube-apiserver sent) as kube-apiserver sends them to a
// Service: POST over HTTP/1.1 with keep-alive and TLS 1.3, a P-256 certificate,
// four connections, each of which waits for an answer before it sends the next
// review. Before anything is measured, the answers are checked: the patch has to
// turn the recorded pod into the intended one, and nothing more.
//
// A round is one short window of load for each case and server, one at a time.
// Rounds alternate between the servers and start with a different one each
// time, so that what else happens on the machine meets all of them. The cost of
// a review is the CPU time of the server process in the window, user and system
// with its garbage collection, divided by the number of reviews; the ratio is
// taken within the round, and the median over the rounds is reported. p50 and
// p99 are over all rounds and include the wait for a processor: client and
// server share the machine. The memory of floor and controller-runtime is that of
// this binary, which links more than they use.
//
// Objects are listed that are stored in another version, with each server in turn as
// their converter, next to a floor that rewrites the apiVersion where kube-apiserver
// puts it. These calls come one at a time and one for each object, so that what a call
// costs by itself weighs more than under load.
//
// Then pods are created through the API server, without a webhook and with each
// of the servers registered in turn.
//
// The exit status is 0 if all limits hold, 1 otherwise. -quick goes through the
// same motions in a few seconds and judges nothing.
//
// Each run writes a file with its results, rounds and turns included. -compare prints
// what became of each row between two of them, see [compare].
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctrllog.SetLogger(logr.Discard())
	if len(os.Args) > 1 {
		if serve, ok := subcommands[os.Args[1]]; ok {
			exit(serve(os.Args[2:]))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// subcommands are the servers that live in this binary, which starts itself
// anew for each of them.
var subcommands = map[string]func(args []string) error{
	"floor":              serveFloor,
	conversionFloorName:  serveConversionFloor,
	"volume-patch":       serveVolumePatch,
	cloudName:            serveCloud,
	"controller-runtime": serveControllerRuntime,
	"library":            serveLibrary,
	cacheName:            readIntoCache,
}

// errMissed is the end of a run in which a limit did not hold.
var errMissed = errors.New("a limit does not hold, see the table")

func exit(err error) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A schedule says how long and how large a run is.
type schedule struct {
	Judge       bool          // whether the limits are judged
	Rounds      int           // of load
	Window      time.Duration // of load, for each case and server in a round
	WarmUp      time.Duration // before the first round, for each case and server
	Many        int           // PodDefaults in the large stage
	Starts      int           // of sallyport in the large stage
	Fresh       [2]int        // PodDefaults when creations with each freshness are compared
	Datasets    int           // in the stage of datasets
	Claims      int           // of these and others
	CreateTurns int           // of pod creation
	Creates     int           // pods in a turn
	Burst       int           // pods in a turn of a burst
	Arrivals    time.Duration // how long pods arrive at a rate in a turn
	Idle        time.Duration // from the start of a server until its memory is looked at
	Listed      int           // objects in a LIST
	ListTurns   int           // of it, for each server
	ColdStarts  int           // of the command that prints its version
	Only        string        // a part, and all else is left out; "" nothing but partPeers and partScale
	Peers       []int         // policies of each peer in the stages after the first with peers
	Scale       scale         // the objects of the stage of a large cluster
	Leads       time.Duration // how long a replica of that stage leads
	Changes     int           // of one PodDefault in it, until each replica has each
	Reads       time.Duration // how long others read after the API server has restarted
}

// measures says whether a part is in the run.
func (p schedule) measures(part string) bool {
	return p.Only == part || p.Only == "" && part != partPeers && part != partScale
}

var (
	fullPlan = schedule{
		Judge: true, Rounds: 9, Window: 500 * time.Millisecond, WarmUp: 300 * time.Millisecond,
		Many: 10_000, Fresh: [2]int{100, 1000}, Starts: 3, Datasets: 5000, Claims: 20_000, CreateTurns: 3, Creates: 400, Burst: 1028, Arrivals: 10 * time.Second, Idle: 10 * time.Second, Listed: 5000, ListTurns: 3, ColdStarts: 21, Peers: []int{100, 1000},
		Scale: scaleOf(100_000), Leads: 2 * time.Minute, Changes: 100, Reads: 20 * time.Second,
	}
	quickPlan = schedule{
		Rounds: 2, Window: 15 * time.Millisecond, WarmUp: 10 * time.Millisecond,
		Many: 200, Fresh: [2]int{20, 40}, Starts: 1, Datasets: 50, Claims: 200, CreateTurns: 1, Creates: 16, Burst: 32, Arrivals: 200 * time.Millisecond, Idle: time.Second, Listed: 50, ListTurns: 1, ColdStarts: 1, Peers: []int{12},
		Scale: scale{Namespaces: 4, PodDefaults: 200, ClusterPodDefaults: 5, Pods: 60}, Leads: 2 * time.Second, Changes: 3, Reads: time.Second,
	}
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print the results as JSON")
	quick := flags.Bool("quick", false, "a smoke run of a few seconds; limits are not judged")
	capture := flags.Bool("capture", false, "record the reviews in cmd/test/bench/testdata anew, and end")
	binary := flags.String("sallyport", "", "the sallyport binary to measure; built from ./cmd/sallyport if empty")
	only := flags.String("only", "", "measure and judge one part alone: "+strings.Join(parts, ", "))
	large := flags.Int("poddefaults", 0, "with -only scale: the `number` of PodDefaults; all else of the cluster is in proportion, and limits are not judged")
	from := flags.String("from", "", "measure nothing: print the tables of a file that a run has written")
	out := flags.String("out", defaultOut(time.Now()), "the file that gets the results as JSON; empty for none")
	comparing := flags.Bool("compare", false, "measure nothing: compare the files of two runs, OLD and NEW, and fail if a row got worse")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only != "" && !slices.Contains(parts, *only) {
		return fmt.Errorf("-only %q: there are %s", *only, strings.Join(parts, ", "))
	}
	if *large != 0 && (*only != partScale || *large < 100) {
		return fmt.Errorf("-poddefaults %d: choose at least 100, together with -only scale", *large)
	}
	if *comparing {
		if flags.NArg() != 2 {
			return fmt.Errorf("-compare takes two files, OLD and NEW; got %d", flags.NArg())
		}
		return compareFiles(stdout, flags.Arg(0), flags.Arg(1))
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *from != "" {
		r, err := readResults(*from)
		if err != nil {
			return err
		}
		return writeText(stdout, r.results, r.Limits)
	}
	progress := newProgress(stderr)
	if *capture {
		return captureToFiles(ctx, "cmd/test/bench/testdata", progress)
	}

	p := fullPlan
	if *quick {
		p = quickPlan
	}
	if *large != 0 {
		p.Judge, p.Scale = false, scaleOf(*large)
	}
	p.Only = *only
	results, err := runPlan(ctx, p, *binary, progress)
	if err != nil {
		return err
	}
	verdicts := judge(limitsOf(p), results)
	if *out != "" {
		if err := writeFile(*out, results, verdicts); err != nil {
			return err
		}
		progress.sayf("the results are in %s", *out)
	}
	if *asJSON {
		err = writeJSON(stdout, results, verdicts)
	} else {
		err = writeText(stdout, results, verdicts)
	}
	if err != nil {
		return err
	}
	if p.Judge && !allHold(verdicts) {
		return errMissed
	}
	return nil
}

// defaultOut is a file of its own for each run, to compare runs with each other.
func defaultOut(now time.Time) string {
	return filepath.Join("bin", "bench-"+now.UTC().Format("20060102-150405")+".json")
}

// A progress prints what is being measured.
type progress struct {
	w     io.Writer
	since time.Time
}

func newProgress(w io.Writer) progress { return progress{w: w, since: time.Now()} }

func (p progress) sayf(format string, args ...any) {
	fmt.Fprintf(p.w, "[%5.1fs] %s\n", time.Since(p.since).Seconds(), fmt.Sprintf(format, args...))
}
