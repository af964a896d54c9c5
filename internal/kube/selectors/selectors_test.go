// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestBothSelectsWhatEachOfTwoSelects(t *testing.T) {
	selector := func(text string) *metav1.LabelSelector {
		if text == "nil" {
			return nil
		}
		out, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	matches := func(s *metav1.LabelSelector, set labels.Set) bool {
		if s == nil {
			return true
		}
		parsed, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Matches(set)
	}
	all := []string{"nil", "", "a=1", "a=2", "a notin (1)", "b=1,a=1", "!b", "a in (1,2),b"}
	for _, a := range all {
		for _, b := range all {
			first, second := selector(a), selector(b)
			both := Both(first, second)
			for _, set := range []labels.Set{{}, {"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "2"}} {
				if got, want := matches(both, set), matches(selector(a), set) && matches(selector(b), set); got != want {
					t.Errorf("%q and %q of %v: %t", a, b, set, got)
				}
				if matches(first, set) != matches(selector(a), set) || matches(second, set) != matches(selector(b), set) {
					t.Errorf("%q or %q was changed", a, b)
				}
			}
		}
	}
}

func TestASelectorThatContradictsItselfSelectsNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a=1": false, "a=1,b=2": false, "a,a=1": false, "a in (1,2),a notin (1)": false, "!a,b": false, "a notin (1),!a": false,
		"a in (1),a in (2)": true, "a in (1,2),a notin (2,1)": true, "a,!a": true, "a=1,!a": true, "b,a in (1,2),a in (3)": true,
	} {
		s, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Contradicts(s); got != want {
			t.Errorf("%q: %t", text, got)
		}
		selected := false
		for _, set := range []map[string]string{{}, {"a": "1"}, {"a": "2"}, {"a": "3"}, {"b": "2"}, {"a": "1", "b": "2"}, {"a": "2", "b": "2"}} {
			selected = selected || Selects(s, set)
		}
		if selected == want {
			t.Errorf("%q selects something: %t", text, selected)
		}
	}
	if Contradicts(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}, {Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}}}) {
		t.Error("an operator that is not known proves nothing")
	}
	if !Selects(nil, nil) || Selects(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}, nil) {
		t.Error("nil selects all, and an invalid selector nothing")
	}
}
