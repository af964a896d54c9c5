// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// An Outcome is the outcome of a step.
type Outcome string

// The outcomes.
const (
	Unchanged Outcome = "unchanged"
	Changed   Outcome = "changed"
	Allowed   Outcome = "allowed"
	Warned    Outcome = "warned"
	Audited   Outcome = "audited"
	Denied    Outcome = "denied"
	// Failed means that it could not be evaluated and that its failure policy refuses the request.
	Failed Outcome = "failed"
	// Ignored means that it could not be evaluated and that its failure policy ignores that.
	Ignored Outcome = "ignored"
	// Skipped means that a match condition excludes the request.
	Skipped Outcome = "skipped"
	// Unknown means that it depends on what is not known here.
	Unknown Outcome = "unknown"
)

// A Step is the evaluation of a policy or webhook.
type Step struct {
	Phase lint.Phase `json:"phase"`
	// Name is "policy/binding", "configuration/webhook" or "PodSecurity".
	Name string `json:"name"`
	// Param is the name of the policy's parameter, with its namespace.
	Param string `json:"param,omitempty"`
	// Again is set for a reinvocation.
	Again   bool    `json:"again,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Messages say why.
	Messages []string `json:"messages,omitempty"`
	// Changes turn the object before the step into the object after it and the API server's
	// defaulting.
	Changes []Change `json:"changes,omitempty"`

	before  any
	order   int
	origins []admission.Origin
	unread  bool // unknown because of a field that the API server sets
}

// A Change is an operation of a JSON Patch.
type Change struct {
	jsonpatch.Operation
	// Origin says what wanted the change, if the webhook is one of Sallyport.
	Origin string `json:"origin,omitempty"`
}

// changes returns what turns one object into another.
func changes(before, after any, origins []admission.Origin) ([]Change, error) {
	patch, err := jsonpatch.Diff(before, after)
	out := make([]Change, len(patch))
	for i, operation := range patch {
		out[i].Operation = operation
		var sources []string
		for _, o := range origins {
			if (replay.Within(o.Path, operation.Path) || replay.Within(operation.Path, o.Path)) && !slices.Contains(sources, o.Source) {
				sources = append(sources, o.Source)
			}
		}
		out[i].Origin = strings.Join(sources, ", ")
	}
	return out, err
}

// A Result is the result of a request.
type Result struct {
	Steps []*Step `json:"steps"`
	// Denied is the API server's answer; nil if the request is allowed.
	Denied *metav1.Status `json:"denied,omitempty"`
	// Warnings and audit annotations are those of all steps.
	Warnings         []string          `json:"warnings,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	// Unknown lists unknown inputs of the result.
	Unknown []string `json:"unknown,omitempty"`
	// Notes say what was assumed.
	Notes []string `json:"notes,omitempty"`
	// Changes turn the object of the request, with the API server's defaults, into Object.
	Changes []Change `json:"changes,omitempty"`
	// Object is the object after all mutations; nil for a request without one.
	Object map[string]any `json:"object,omitempty"`

	// Asked is set if the API server has decided.
	Asked bool `json:"asked,omitempty"`

	// An expression reads whether the request is a dry run, or its field manager.
	readsDryRun, readsManager bool
}

// note adds a note once.
func (r *Result) note(text string) {
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}
