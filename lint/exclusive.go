// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// exclusive tells whether no request can be for both webhooks, as far as their
// selectors or a pair of opposite match conditions show that.
func exclusive(a, b *webhook) bool {
	return disjoint(a.NamespaceSelector, b.NamespaceSelector) || disjoint(a.ObjectSelector, b.ObjectSelector) ||
		slices.ContainsFunc(a.MatchConditions, func(x admissionregistrationv1.MatchCondition) bool {
			return slices.ContainsFunc(b.MatchConditions, func(y admissionregistrationv1.MatchCondition) bool {
				return opposite(x.Expression, y.Expression) || opposite(y.Expression, x.Expression)
			})
		})
}

// opposite tells whether b is the negation of a, written out: a is !(b), or has terms
// with || between them whose negations b has with && between them.
func opposite(a, b string) bool {
	if negated(a) == plainTerm(b) {
		return true
	}
	terms := splitTerms(a, "||")
	for i, term := range terms {
		terms[i] = negated(term)
	}
	others := splitTerms(b, "&&")
	for i, term := range others {
		others[i] = plainTerm(term)
	}
	slices.Sort(terms)
	slices.Sort(others)
	return slices.Equal(terms, others)
}

// negated is the negation of one term.
func negated(term string) string {
	term = plainTerm(term)
	if rest, ok := strings.CutPrefix(term, "!"); ok && len(splitTerms(rest, "||")) == 1 && len(splitTerms(rest, "&&")) == 1 {
		return plainTerm(rest)
	}
	for _, operators := range [][2]string{{"!=", "=="}, {"==", "!="}} {
		if parts := splitTerms(term, operators[0]); len(parts) == 2 {
			return plainTerm(parts[0]) + " " + operators[1] + " " + plainTerm(parts[1])
		}
	}
	return "!" + term
}

// plainTerm is a term without white space and parentheses around it.
func plainTerm(term string) string {
	term = strings.Join(strings.Fields(term), " ")
	for strings.HasPrefix(term, "(") && closing(term) == len(term)-1 {
		term = strings.TrimSpace(term[1 : len(term)-1])
	}
	return term
}

// closing is the index of what closes the bracket that the text begins with; -1 if
// nothing does.
func closing(text string) int {
	depth := 0
	for i := range outsideQuotes(text) {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// splitTerms splits at an operator of two characters that stands in no brackets.
func splitTerms(text, operator string) []string {
	var out []string
	depth, begin := 0, 0
	for i := range outsideQuotes(text) {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth == 0 && i >= begin && strings.HasPrefix(text[i:], operator) {
			out = append(out, text[begin:i])
			begin = i + len(operator)
		}
	}
	return append(out, text[begin:])
}

// outsideQuotes goes through the bytes of a CEL expression that are in no string.
func outsideQuotes(text string) func(func(int) bool) {
	return func(yield func(int) bool) {
		quote := byte(0)
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quote != 0 && c == '\\':
				i++
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '\'' || c == '"':
				quote = c
			case !yield(i):
				return
			}
		}
	}
}
