// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/recording"
	"github.com/sallyport-io/sallyport/internal/replay/review"
)

// The kinds of differences.
const (
	NowDenied    = "is denied now"
	NowAllowed   = "is allowed now"
	OtherMessage = "is denied with another message"
	NowFails     = "fails now"
	NoLonger     = "does not fail any more"
	NotAsked     = "is not asked about any more"
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
	result := &Result{Skipped: map[string]int{}, Groups: []*Group{}}
	groups := map[[3]string]*Group{}
	for _, o := range objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		record, skipped, err := read(o)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case skipped != "":
			result.Skipped[skipped]++
			continue
		}
		was := record.Was
		if run.Before != nil {
			was = decide(ctx, record, before)
		}
		if was == nil {
			result.Undecided++
			continue
		}
		result.Replayed++
		is := decide(ctx, record, now)
		differences := differ(record, was, is)
		if len(differences) == 0 {
			result.Same++
			continue
		}
		result.Different++
		for _, d := range differences {
			key := [3]string{d.Webhook, d.Kind, d.Detail}
			group := groups[key]
			if group == nil {
				group = &d
				groups[key] = group
				result.Groups = append(result.Groups, group)
			}
			group.Count++
			if len(group.Examples) < examples {
				group.Examples = append(group.Examples, record.Object.At()+": "+record.Object.Title())
			}
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

func (r *Result) why() string {
	var reasons []string
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
	decision := &Decision{Warnings: out.Warnings, After: out.After}
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
	if was.After != nil && is.After != nil {
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

// differing returns the fields in which two objects differ, without list indexes. Values that
// the recording redacted never differ.
func differing(was, is []byte) ([]string, error) {
	before, err := recording.Decode(was)
	if err != nil {
		return nil, err
	}
	after, err := recording.Decode(is)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	walk("", before, after, paths)
	return slices.Sorted(maps.Keys(paths)), nil
}

func walk(path string, was, is any, paths map[string]bool) {
	switch before := was.(type) {
	case map[string]any:
		after, ok := is.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(before)
		maps.Copy(names, after)
		for name := range names {
			a, inBefore := before[name]
			b, inAfter := after[name]
			below := strings.TrimPrefix(path+"."+name, ".")
			if inBefore != inAfter {
				paths[below] = true
			} else {
				walk(below, a, b, paths)
			}
		}
		return
	case []any:
		after, ok := is.([]any)
		if !ok {
			break
		}
		if len(before) != len(after) {
			paths[path] = true
			return
		}
		for i := range before {
			walk(path+"[*]", before[i], after[i], paths)
		}
		return
	}
	if !reflect.DeepEqual(was, is) && !redacted(was) {
		paths[path] = true
	}
}

func redacted(value any) bool {
	return value == recording.Redacted || value == recording.RedactedData
}
