// SPDX-License-Identifier: Apache-2.0

// Package fetch reads the recent reviews that the replicas of a server keep in memory.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// interval is how often replicas are asked while [Options.For] lasts.
const interval = 2 * time.Second

// Options select the server and how its replicas are reached.
type Options struct {
	Cluster *cluster.Cluster
	// Configuration is the name of the server's webhook configurations. They name its Service or
	// URL, and the CA that signs its certificate.
	Configuration string
	// Port is the port for metrics on the pods behind the Service.
	Port int
	// Replicas are URLs of the ports for metrics, and replace the pods behind the Service.
	Replicas []string
	// CABundle is PEM-encoded, and replaces the CA of the webhook configurations.
	CABundle []byte
	// ServiceAccount is namespace/name. If set, replicas get a token of it that ends soon;
	// otherwise the user's own credentials.
	ServiceAccount string
	// For is how long to keep asking; 0 to ask once.
	For time.Duration
	// Notes receives progress.
	Notes io.Writer
}

// fetcher remembers what each replica has answered.
type fetcher struct {
	Options
	client    *http.Client
	namespace string // of the Service
	service   string // empty with Replicas
	cursors   map[string]string
	problems  map[string]string // of the last round
	reviews   int
}

// Run writes the recent reviews of all replicas as lines of JSON, ordered by time. With
// [Options.For], it writes in rounds, each of which is ordered. The error names the replicas that
// did not answer in the last round.
func Run(ctx context.Context, o Options, out io.Writer) error {
	f := &fetcher{Options: o, cursors: map[string]string{}, problems: map[string]string{}}
	if err := f.connect(ctx); err != nil {
		return err
	}
	defer f.client.CloseIdleConnections()
	if o.For == 0 {
		return errors.Join(f.round(ctx, out), f.unanswered())
	}
	manifest.Note(o.Notes, "recording for %s; interrupt to end earlier", o.For)
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		return false, f.round(ctx, out)
	})
	if ctx.Err() != nil { // the time is over, or the user has interrupted
		err = nil
	}
	return errors.Join(err, f.unanswered())
}

// round writes what the replicas have recorded since the last round. Replicas that do not answer
// are in f.problems.
func (f *fetcher) round(ctx context.Context, out io.Writer) error {
	replicas, err := f.replicas(ctx)
	if err != nil {
		return err
	}
	var lines []line
	problems := map[string]string{}
	for _, replica := range replicas {
		answered, err := f.ask(ctx, replica)
		switch {
		case err == nil:
			lines = append(lines, answered...)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			problems[replica.name] = err.Error()
			if f.For > 0 && f.problems[replica.name] != err.Error() {
				manifest.Note(f.Notes, "%s: %v", replica.name, err)
			}
		}
	}
	f.problems = problems
	slices.SortStableFunc(lines, func(a, b line) int { return a.time.Compare(b.time) })
	for _, line := range lines {
		if _, err := out.Write(line.text); err != nil {
			return err
		}
	}
	f.reviews += len(lines)
	return nil
}

// unanswered says how much was written, and returns the problems of the last round.
func (f *fetcher) unanswered() error {
	manifest.Note(f.Notes, "reviews: %d, replicas: %d", f.reviews, len(f.cursors))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.problems)) {
		errs = append(errs, fmt.Errorf("%s: %s", name, f.problems[name]))
	}
	return errors.Join(errs...)
}
