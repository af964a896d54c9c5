// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Preview asks webhooks of this package about a pod that does not exist yet: a dry run, which no feature observes. Refused
// says why the pod would be denied. Unapplied are the objects that select it and would be left out, with the reason. Objects
// in mode Audit are neither.
func Preview(ctx context.Context, webhooks []admission.Webhook, req *admissionv1.AdmissionRequest) (refused, unapplied []string, err error) {
	trace, dry := &Trace{}, *req
	dry.DryRun = new(true)
	denial := ""
	for _, w := range webhooks {
		resp, err := w.Handler.Handle(WithTrace(ctx, trace), &dry)
		if err != nil {
			return nil, nil, err
		}
		if !resp.Allowed && denial == "" {
			denial = resp.Status.Message
		}
	}
	for r := range trace.Selected() {
		switch {
		case r.Why == match.Refused && r.Text != "":
			refused = append(refused, r.Text)
		case r.Why == match.Unusable || r.Why == match.Skipped:
			unapplied = append(unapplied, fmt.Sprintf("%s: %s", r.Object, r.Text))
		}
	}
	switch {
	case denial == "":
		refused = nil
	case len(refused) == 0: // a limit, or a right that is missing
		refused = []string{denial}
	}
	return refused, unapplied, nil
}

// WithoutSecrets returns a source whose objects bring none of the Secrets that they select by labels.
func WithoutSecrets(source match.Source) match.Source { return withoutSecrets{source} }

type withoutSecrets struct{ match.Source }

// Fresh implements [match.Source].
func (s withoutSecrets) Fresh(ctx context.Context, namespace string) (match.Source, error) {
	fresh, err := s.Source.Fresh(ctx, namespace)
	return withoutSecrets{fresh}, err
}

// Connect implements [match.Source].
func (withoutSecrets) Connect(string, []*plan.Plan) error { return nil }
