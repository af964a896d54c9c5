// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/plugins"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/served"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
)

// Options select the cases and how to run them.
type Options struct {
	// Run selects the cases with a matching title; nil selects all.
	Run *regexp.Regexp
	// FailOnWarnings makes unexpected warnings fail a case, in every suite.
	FailOnWarnings bool
	// AllowUnknown makes it a warning that a result depends on what is not known.
	AllowUnknown bool
	// Update rewrites the files of expected objects, patches and denials.
	Update bool
	// Parallel limits the cases that run at a time; 0 means one per CPU.
	Parallel int
}

// A Result is the outcome of a case.
type Result struct {
	*Case
	// Problems are the unmet expectations, each with the actual result.
	Problems []Problem
	// Err is why the case could not run.
	Err error
	// Notes are the notes of the review. Warnings are those of webhooks that the case does not expect.
	Notes, Warnings []string
	// Unknown says what the API server's answer depends on, and is not among the files of the case. The case
	// has not passed then.
	Unknown []string
	// Open is what could refuse pods of the case, and is not among its files.
	Open plugins.Open
	// Updated lists the files that were rewritten.
	Updated  []string
	Duration time.Duration
}

// A Problem is an unmet expectation.
type Problem struct {
	// Message is one line. Diff may be several: expected (-) and actual (+).
	Message, Diff string
}

// Passed reports whether all expectations are met, and nothing that the result depends on is unknown.
func (r *Result) Passed() bool { return r.Err == nil && len(r.Problems) == 0 && len(r.Unknown) == 0 }

// Run runs the selected cases. It passes each result to done as soon as possible, in the order
// of the cases.
func Run(ctx context.Context, cases []*Case, o Options, done func(*Result)) {
	if o.Run != nil {
		cases = slices.DeleteFunc(slices.Clone(cases), func(c *Case) bool { return !o.Run.MatchString(c.Title()) })
	}
	configs := configs{}
	results := make([]chan *Result, len(cases))
	for i := range results {
		results[i] = make(chan *Result, 1)
	}
	var running errgroup.Group
	running.SetLimit(cmp.Or(o.Parallel, runtime.GOMAXPROCS(0)))
	go func() {
		for i, c := range cases {
			running.Go(func() error {
				terminal.Waiting(ctx, "running cases")
				results[i] <- c.run(ctx, &configs, o)
				return nil
			})
		}
	}()
	for i := range results {
		done(<-results[i])
	}
}

// configs caches configurations by path.
type configs struct{ read sync.Map }

func (c *configs) load(path string) (*serve.Config, error) {
	type loaded = func() (*serve.Config, error)
	once, _ := c.read.LoadOrStore(path, sync.OnceValues(func() (*serve.Config, error) {
		return serve.Load(path, nil, serve.OfDeployment...)
	}))
	return once.(loaded)()
}

func (c *Case) run(ctx context.Context, configs *configs, o Options) *Result {
	result, start := &Result{Case: c, Err: c.err}, time.Now()
	if result.Err == nil {
		result.Err = ctx.Err()
	}
	if result.Err == nil {
		result.Err = c.review(ctx, configs, o, result)
	}
	result.Duration = time.Since(start)
	return result
}

func (c *Case) review(ctx context.Context, configs *configs, o Options, result *Result) error {
	config, err := configs.load(c.Config)
	if err != nil {
		return err
	}
	var notes bytes.Buffer
	var outcomes []*review.Outcome
	run := review.Run{
		Files: c.Objects, With: c.With, Old: c.Old, Stdin: strings.NewReader(""), Notes: &notes, Open: &result.Open,
		Show:      func(out *review.Outcome) error { outcomes = append(outcomes, out); return nil },
		Operation: admissionv1.Operation(c.Operation), Namespace: cmp.Or(c.Namespace, metav1.NamespaceDefault), Validation: c.Validate,
		User: authenticationv1.UserInfo{Username: c.User.Username, Groups: c.User.Groups},
	}
	run.RefuseInvalid = run.Validation == fieldcheck.Strict
	served.Review(&run, config)
	err = run.Do(ctx)
	for line := range strings.Lines(notes.String()) {
		result.Notes = append(result.Notes, strings.TrimSuffix(line, "\n"))
	}
	if err != nil {
		return err
	}
	for _, out := range outcomes {
		for _, unknown := range out.Unknown {
			text := out.Object.Title() + ": " + unknown
			if o.AllowUnknown {
				result.Notes = append(result.Notes, warningPrefix+"not known: "+text)
			} else {
				result.Unknown = append(result.Unknown, text)
			}
		}
	}
	if o.Update {
		if result.Updated, err = c.update(outcomes); err != nil {
			return err
		}
	}
	found, err := c.compare(outcomes, o.FailOnWarnings || c.Warnings == WarningsFail)
	if err == nil {
		result.Problems, result.Warnings = found.problems, found.others
	}
	return err
}
