// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The kinds of differences.
const (
	NowDenied    = "is denied now"
	NowAllowed   = "is allowed now"
	OtherMessage = "is denied with another message"
	NowFails     = "fails now"
	NoLonger     = "no longer fails"
	NotAsked     = "is no longer called for"
	Changed      = "is changed differently"
	Warned       = "has other warnings"
)

// A Run replays records from files.
type Run struct {
	Files []string
	Stdin io.Reader
	// Now decides. Before made the decisions to compare with; nil means the recorded decisions.
	Now, Before *review.Run
}

// A Result lists the decisions that differ.
type Result struct {
	Replayed  int      `json:"replayed"`
	Same      int      `json:"same"`
	Different int      `json:"different"`
	Groups    []*Group `json:"groups"`
	// Skipped counts the records that cannot be replayed, by reason.
	Skipped map[string]int `json:"skipped,omitempty"`
	// Undecided counts the records without a recorded decision to compare with.
	Undecided int `json:"undecided"`
	// Uncovered counts the allowed requests that no webhook is called for, before or now.
	Uncovered int `json:"uncovered"`

	groups map[[3]string]*Group // by webhook, kind and detail
}

// A Group collects differences of one kind with one cause.
type Group struct {
	Webhook string `json:"webhook,omitempty"`
	Kind    string `json:"kind"`
	// Detail is the message, with object names replaced, or the fields that differ.
	Detail string `json:"detail"`
	Count  int    `json:"count"`
	// Examples locates some of the records and names their objects.
	Examples []string `json:"examples"`
}

// examples limits the examples in a group.
const examples = 5

// Do replays all records. It returns an error for input that it cannot read.
func (run *Run) Do(ctx context.Context) (*Result, error) {
	now, err := run.Now.Prepared(ctx)
	if err != nil {
		return nil, err
	}
	var before []admission.Webhook
	if run.Before != nil {
		if before, err = run.Before.Prepared(ctx); err != nil {
			return nil, err
		}
	}
	objects, errRead := manifest.Read(run.Files, run.Stdin)
	errs := []error{errRead}
	result := &Result{Skipped: map[string]int{}, Groups: []*Group{}, groups: map[[3]string]*Group{}}
	for batch := range slices.Chunk(objects, batchSize) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var batched []*comparison
		for _, o := range batch {
			record, skipped, err := read(o)
			switch {
			case err != nil:
				errs = append(errs, err)
			case skipped != "":
				result.Skipped[skipped]++
			default:
				batched = append(batched, &comparison{record: record})
			}
		}
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for _, r := range batched {
			group.Go(func() error {
				r.run(ctx, run.Before != nil, before, now)
				return nil
			})
		}
		_ = group.Wait() // errors are in the comparisons
		for _, r := range batched {
			if r.err != nil {
				errs = append(errs, r.err)
				continue
			}
			result.add(r)
		}
	}
	slices.SortStableFunc(result.Groups, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Detail, b.Detail))
	})
	if result.Replayed == 0 && errors.Join(errs...) == nil && result.Undecided == 0 {
		errs = append(errs, errors.New("there is nothing to replay"+result.why()))
	}
	return result, errors.Join(errs...)
}

// batchSize limits the records that are replayed before their results are counted, in their order.
const batchSize = 256

// comparison is a record and how its decisions differ.
type comparison struct {
	record      *Record
	undecided   bool // there is no decision to compare with
	uncovered   bool // no webhook is called
	differences []Group
	err         error // of the recorded patch
}

// run replays the record with the webhooks now, and compares with the recorded decision or with that of
// the webhooks before.
func (r *comparison) run(ctx context.Context, decided bool, before, now []admission.Webhook) {
	terminal.Waiting(ctx, "replaying requests")
	was := r.record.Was
	if decided {
		was = decide(ctx, r.record, before)
	}
	if was == nil {
		r.undecided = true
		return
	}
	is := decide(ctx, r.record, now)
	if is != nil && is.uncalled && !was.Denied && len(was.Patch) == 0 && (!decided || was.uncalled) {
		r.uncovered = true
		return
	}
	if samePatch(was, is) {
		was.After = is.After // but for redacted values; applying the patch once more is most of the work
	} else if !decided {
		if r.err = r.record.apply(); r.err != nil {
			return
		}
	}
	r.differences = differ(r.record, was, is)
}

// samePatch reports whether two decisions about the same object have the same patch, but for values that
// the recording redacted.
func samePatch(was, is *Decision) bool {
	if is == nil || is.Failed != "" || len(was.Patch) == 0 || len(is.Patch) == 0 {
		return false
	}
	paths, err := differing(was.Patch, is.Patch)
	return err == nil && len(paths) == 0
}

// add counts a replay.
func (r *Result) add(one *comparison) {
	switch {
	case one.undecided:
		r.Undecided++
		return
	case one.uncovered:
		r.Uncovered++
		return
	}
	r.Replayed++
	if len(one.differences) == 0 {
		r.Same++
		return
	}
	r.Different++
	for _, d := range one.differences {
		key := [3]string{d.Webhook, d.Kind, d.Detail}
		group := r.groups[key]
		if group == nil {
			group = &d
			r.groups[key] = group
			r.Groups = append(r.Groups, group)
		}
		group.Count++
		if len(group.Examples) < examples {
			group.Examples = append(group.Examples, one.record.Object.At()+": "+one.record.Object.Title())
		}
	}
}

// Complete reports whether all records were compared, other than those that tell nothing of admission.
func (r *Result) Complete() bool {
	for reason, count := range r.Skipped {
		if count > 0 && !harmless[reason] {
			return false
		}
	}
	return r.Undecided == 0
}

func (r *Result) why() string {
	var reasons []string
	if r.Uncovered > 0 {
		reasons = append(reasons, fmt.Sprintf("%d %s", r.Uncovered, uncovered))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", r.Skipped[reason], reason))
	}
	if reasons == nil {
		return ""
	}
	return ": " + strings.Join(reasons, "; ")
}

// decide calls the webhook that the record names or, without a name, all webhooks whose rules
// cover the request. It returns nil if there is no such webhook.
func decide(ctx context.Context, record *Record, webhooks []admission.Webhook) *Decision {
	if record.Webhook != "" {
		webhooks = slices.DeleteFunc(slices.Clone(webhooks), func(w admission.Webhook) bool { return w.Name != record.Webhook })
	}
	out, err := record.Run(ctx, webhooks)
	if err != nil {
		return &Decision{Failed: err.Error()}
	}
	if record.Webhook != "" && len(out.Calls) == 0 {
		return nil
	}
	decision := &Decision{Warnings: out.Warnings, After: out.After, uncalled: len(out.Calls) == 0}
	if len(out.Calls) == 1 {
		decision.Patch = out.Calls[0].Patch
	}
	if out.Denied != nil {
		decision.Denied, decision.By, decision.Message = true, out.DeniedBy, out.Denied.Message
	}
	return decision
}

// differ compares two decisions on a record.
func differ(record *Record, was, is *Decision) []Group {
	one := func(webhook, kind, detail string) []Group {
		return []Group{{Webhook: cmp.Or(webhook, record.Webhook), Kind: kind, Detail: general(record, detail)}}
	}
	switch {
	case is == nil:
		return one("", NotAsked, "no webhook of this name is configured for such requests")
	case is.Failed != "" && was.Failed == "":
		return one("", NowFails, is.Failed)
	case is.Failed != "":
		return nil
	case was.Failed != "":
		return one("", NoLonger, was.Failed)
	case is.Denied && !was.Denied:
		return one(is.By, NowDenied, is.Message)
	case was.Denied && !is.Denied:
		return one(was.By, NowAllowed, was.Message)
	case is.Denied:
		if general(record, was.Message) != general(record, is.Message) {
			return one(is.By, OtherMessage, is.Message)
		}
		return nil
	}
	var found []Group
	if was.After != nil && is.After != nil && !bytes.Equal(was.After, is.After) {
		paths, err := differing(was.After, is.After)
		if err != nil {
			found = append(found, one("", NowFails, err.Error())...)
		} else if len(paths) > 0 {
			found = append(found, one("", Changed, strings.Join(paths, ", "))...)
		}
	}
	if was.After != nil && !slices.Equal(was.Warnings, is.Warnings) {
		found = append(found, one("", Warned, "now: "+cmp.Or(strings.Join(is.Warnings, "; "), "none"))...)
	}
	return found
}

// general replaces the object's names in a message, so that the same message about many objects
// forms one group.
func general(record *Record, message string) string {
	for _, name := range []struct{ is, by string }{
		{record.Request.Name, "NAME"}, {record.Object.Name, "NAME"}, {record.Object.GenerateName, "NAME"}, {record.Request.Namespace, "NAMESPACE"},
	} {
		if name.is != "" {
			message = regexp.MustCompile(`(^|[^\w-])`+regexp.QuoteMeta(name.is)+`($|[^\w-])`).ReplaceAllString(message, "${1}"+name.by+"${2}")
		}
	}
	return message
}

// differing returns the fields in which two values differ, without list indexes. Values that
// the recording redacted never differ.
func differing(was, is jsontext.Value) ([]string, error) {
	paths := map[string]bool{}
	if err := walk("", was, is, paths); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(paths)), nil
}

// walk decodes only what differs in bytes.
func walk(path string, was, is jsontext.Value, paths map[string]bool) error {
	if bytes.Equal(was, is) {
		return nil
	}
	switch kind := was.Kind(); {
	case kind == '{' && is.Kind() == '{':
		var before, after map[string]jsontext.Value
		if err := errors.Join(json.Unmarshal(was, &before), json.Unmarshal(is, &after)); err != nil {
			return err
		}
		names := maps.Clone(before)
		maps.Copy(names, after)
		for name := range names {
			a, inBefore := before[name]
			b, inAfter := after[name]
			below := strings.TrimPrefix(path+"."+name, ".")
			if inBefore != inAfter {
				paths[below] = true
			} else if err := walk(below, a, b, paths); err != nil {
				return err
			}
		}
		return nil
	case kind == '[' && is.Kind() == '[':
		var before, after []jsontext.Value
		if err := errors.Join(json.Unmarshal(was, &before), json.Unmarshal(is, &after)); err != nil {
			return err
		}
		if len(before) != len(after) {
			paths[path] = true
			return nil
		}
		for i := range before {
			if err := walk(path+"[*]", before[i], after[i], paths); err != nil {
				return err
			}
		}
		return nil
	}
	before, errBefore := recording.Decode(was)
	after, errAfter := recording.Decode(is)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return err
	}
	if !reflect.DeepEqual(before, after) && !redacted(before) {
		paths[path] = true
	}
	return nil
}

func redacted(value any) bool {
	return value == recording.Redacted || value == recording.RedactedData
}
