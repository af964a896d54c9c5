// SPDX-License-Identifier: Apache-2.0

// Package terms compares CEL expressions term by term, as text.
package terms

import (
	"slices"
	"strings"
)

// Opposite reports whether b is the written-out negation of a: a is !(b), or a joins
// terms with || whose negations b joins with &&.
func Opposite(a, b string) bool {
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

// negated returns the negation of one term.
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

// plainTerm strips white space and parentheses around a term.
func plainTerm(term string) string {
	term = strings.Join(strings.Fields(term), " ")
	for strings.HasPrefix(term, "(") && closing(term) == len(term)-1 {
		term = strings.TrimSpace(term[1 : len(term)-1])
	}
	return term
}

// closing returns the index of the bracket that closes the first one, or -1.
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

// splitTerms splits at a two-character operator outside brackets.
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

// outsideQuotes yields the indexes of a CEL expression's bytes outside strings.
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
