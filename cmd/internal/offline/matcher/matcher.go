// SPDX-License-Identifier: Apache-2.0

// Package matcher tells which requests reach webhooks and policies. It asks the API server's own predicates for rules,
// selectors and match conditions, and adds two things that they do not have: the answer Maybe, where they would need
// something that is not known, and the reason.
//
// Rules that ask what a webhook or policy could ever match, whatever the objects are, ask [Covers] and package selectors.
package matcher

import (
	"slices"
	"strings"
)

// Answer says whether a policy or webhook sees a request.
type Answer string

// Possible answers.
const (
	In  Answer = "in"
	Out Answer = "out"
	// Maybe means that it depends on unknown data.
	Maybe Answer = "maybe"
	// Refused means that the request is refused without a call: a match condition
	// cannot be evaluated, and the failure policy is Fail.
	Refused Answer = "refused"
)

// Step is the result of one test.
type Step struct {
	Answer Answer
	// Why says what includes or excludes the request; empty for a test that is not made.
	Why string
}

// Conclude returns what all steps together say. One that excludes the request decides; after that, one that is not known.
func Conclude(steps []Step) (Answer, string) {
	answer, why := In, []string{}
	for _, decisive := range []Answer{Out, Maybe, Refused} {
		i := slices.IndexFunc(steps, func(s Step) bool { return s.Answer == decisive })
		if i >= 0 && decisive != Maybe {
			return decisive, steps[i].Why
		}
		if i >= 0 {
			answer = Maybe
			break
		}
	}
	for _, s := range steps {
		if s.Why != "" {
			why = append(why, s.Why)
		}
	}
	return answer, strings.Join(why, "; ")
}
