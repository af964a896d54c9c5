// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// IgnoreAnnotation on an object names findings about it to ignore. Each line is "RULE:
// reason", or "RULE WEBHOOK: reason" for one entry of a configuration. Commas separate
// several rules.
const IgnoreAnnotation = "lint.sallyport.io/ignore"

// Ignore ignores findings of a rule.
type Ignore struct {
	Rule string
	// Object is a title as in findings, and Webhook the name of an entry; empty for
	// all.
	Object, Webhook string
	// Reason is never empty.
	Reason string
}

// ParseIgnore parses "RULE=reason" or "RULE@Kind/name=reason".
func ParseIgnore(text string) (Ignore, error) {
	where, reason, ok := strings.Cut(text, "=")
	rule, object, _ := strings.Cut(where, "@")
	out := Ignore{Rule: strings.TrimSpace(rule), Object: strings.TrimSpace(object), Reason: strings.TrimSpace(reason)}
	if !ok || out.Reason == "" {
		return Ignore{}, fmt.Errorf("%q: want RULE=REASON: a reason is required", text)
	}
	return out, out.validate()
}

func (i Ignore) validate() error {
	if _, ok := FindRule(i.Rule); !ok {
		return fmt.Errorf("there is no rule %q", i.Rule)
	}
	return nil
}

// parseAnnotation parses an annotation. Valid lines count even if others are invalid.
func parseAnnotation(text string) ([]Ignore, error) {
	var out []Ignore
	var errs []error
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		where, reason, _ := strings.Cut(line, ":")
		words := strings.Fields(where)
		reason = strings.TrimSpace(reason)
		switch {
		case reason == "":
			errs = append(errs, fmt.Errorf("%q has no reason: write RULE: REASON", line))
			continue
		case len(words) == 0 || len(words) > 2:
			errs = append(errs, fmt.Errorf("%q: write RULE: REASON or RULE WEBHOOK: REASON", line))
			continue
		}
		for rule := range strings.SplitSeq(words[0], ",") {
			ignore := Ignore{Rule: rule, Reason: reason}
			if len(words) == 2 {
				ignore.Webhook = words[1]
			}
			if err := ignore.validate(); err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, ignore)
		}
	}
	return out, errors.Join(errs...)
}

// ignored returns why a finding about an object is ignored, or "".
func (c *checker) ignored(o *Object, webhook string) string {
	applies := func(i Ignore) bool {
		return i.Rule == c.rule.ID && (i.Object == "" || i.Object == o.title()) && (i.Webhook == "" || i.Webhook == webhook)
	}
	if i := slices.IndexFunc(c.options.Ignore, applies); i >= 0 {
		return c.options.Ignore[i].Reason
	}
	annotated, err := parseAnnotation(o.Annotations[IgnoreAnnotation])
	if err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n")
		c.skip(o.title(), "the annotation %s: %s", IgnoreAnnotation, problem)
	}
	if i := slices.IndexFunc(annotated, applies); i >= 0 {
		return annotated[i].Reason
	}
	return ""
}
