// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// maxAsked is how many dry runs the API server is asked for at the same time.
const maxAsked = 8

// manyAsked is how many pods are worth a note before the API server is asked.
const manyAsked = 50

var errUnknown = errors.New("whether the API server accepts it is not known")

// ErrUnknown returns an error about pods of which it is not known whether the API server accepts them; nil if there are
// none.
func ErrUnknown(pods int) error {
	if pods == 0 {
		return nil
	}
	return fmt.Errorf("of %s, %w; --server=false does not ask", cli.Count(pods, "pod", "pods"), errUnknown)
}

// askServer asks the API server about a new pod that the webhooks admit, if there is one to ask. A pod that exists and
// would not change is not asked about. One that exists and would change may count twice, for example in a quota: what
// refuses it without the change too is unknown.
func (s *Simulator) askServer(ctx context.Context, out *review.Outcome, controller metav1.OwnerReference) error {
	exists := out.Object.UID != ""
	if s.Server == nil || out.Denied != nil || out.Object.GVK() != workload.PodKind || exists && string(out.Before) == string(out.After) {
		return nil
	}
	if !exists {
		_, err := out.AskPod(ctx, s.Server, controller)
		return err
	}
	return s.askBoth(ctx, uninjected(out), out, controller)
}

// uninjected is the outcome for a pod that no webhook changes.
func uninjected(out *review.Outcome) *review.Outcome {
	was := *out.Result
	was.After, was.Calls = was.Before, nil
	return &review.Outcome{Result: &was, Object: out.Object}
}

// askServer asks the API server about a pod. For a pod that exists it is one like it: as it was sent, if that is known,
// or else as it is stored, with what it lacks.
func (x *explainer) askServer(ctx context.Context, e *Explanation, known *Defaults, stored *manifest.Object, out *review.Outcome, controller metav1.OwnerReference) error {
	if x.Server == nil || out.Denied != nil {
		return nil
	}
	asked := out
	var err error
	switch {
	case stored == nil:
		err = x.Simulator.askServer(ctx, asked, controller)
	case e.Basis == containersAlone:
		if asked, err = x.try(ctx, stored, known); err == nil {
			err = x.Simulator.askServer(ctx, asked, controller)
		}
	default:
		err = x.askBoth(ctx, uninjected(asked), asked, controller)
	}
	if err == nil {
		out.Denied, out.DeniedBy, out.Unanswered = asked.Denied, asked.DeniedBy, asked.Unanswered
	}
	return err
}

// askBoth asks about a pod after a change and, if it is refused, as it was before.
func (s *Simulator) askBoth(ctx context.Context, was, is *review.Outcome, controller metav1.OwnerReference) error {
	after, err := is.AskPod(ctx, s.Server, controller)
	if err != nil || is.Denied == nil {
		return err
	}
	before, err := was.AskPod(ctx, s.Server, controller)
	if err != nil || was.Denied == nil || reason(before.Said) != reason(after.Said) {
		return err
	}
	is.Denied, is.DeniedBy = nil, ""
	is.Unanswered = "the API server refuses such a pod now, without the change too: " + after.Said
	return nil
}

// interferes reports whether objects of the cluster change a pod that is excluded from injection, or deny it.
func (s *Simulator) interferes(ctx context.Context, now *Defaults, is *review.Outcome) (bool, error) {
	if !slices.ContainsFunc(now.All, func(d *Default) bool { return !d.Plan.AllowExclude() }) {
		return false, nil
	}
	pod := *is.Object
	pod.Raw = is.After
	excluded, err := pod.EditMetadata(dryrun.Exclude)
	if err != nil {
		return false, err
	}
	out, err := s.try(ctx, excluded, now)
	if err != nil || out.Denied != nil && out.DeniedBy != PodSecurity {
		return err == nil, err
	}
	var before, after corev1.Pod
	if err := errors.Join(json.Unmarshal(out.Before, &before), json.Unmarshal(out.After, &after)); err != nil {
		return false, err
	}
	lost, err := dryrun.Lacking([]byte("{}"), out.Before, &after)
	if err != nil {
		return false, err
	}
	added, err := dryrun.Lacking([]byte("{}"), out.After, &before)
	return len(lost)+len(added) > 0, err
}

var particulars = regexp.MustCompile(`^[Pp]ods? "[^"]*"|[0-9]+\w*`)

// reason returns a message without the name of the pod, which may be generated, and without amounts.
func reason(message string) string { return particulars.ReplaceAllString(message, "") }

// askServer asks the API server about pods that would change and be admitted by the webhooks. Each of the changes has
// a verdict. Now is what the cluster has.
func (p Preview) askServer(ctx context.Context, now *Defaults, changes []*Change) error {
	var admitted, asked []*Change
	for _, c := range changes {
		if p.Server == nil || c.Is.Denied != nil {
			continue
		}
		admitted = append(admitted, c)
		interferes, err := p.interferes(ctx, now, c.Is)
		if err != nil {
			return err
		}
		if interferes {
			c.Is.Unanswered = "the current ClusterPodDefaults would be applied to it, because they allow no exclusion"
		} else {
			asked = append(asked, c)
		}
	}
	if len(asked) >= manyAsked && p.Server.Limit == 0 {
		manifest.Note(p.Notes, "note: asking the API server about %d pods of the namespace %s, by dry runs; --server=false omits it", len(asked), now.namespace)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAsked)
	for _, c := range asked {
		group.Go(func() error {
			if c.Was.Denied != nil {
				_, err := c.Is.AskPod(ctx, p.Server, c.controller)
				return err
			}
			was := *c.Was.Result
			return p.askBoth(ctx, &review.Outcome{Result: &was, Object: c.Was.Object}, c.Is, c.controller)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	told := map[string]bool{}
	for _, c := range admitted {
		if reason := c.Is.Unanswered; reason != "" && !told[reason] {
			told[reason] = true
			manifest.Note(p.Notes, "unknown: %s: %v: %s", c.Workload.Title(), errUnknown, reason)
		}
	}
	return nil
}
