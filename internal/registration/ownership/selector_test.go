// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func parse(t *testing.T, text string) *metav1.LabelSelector {
	t.Helper()
	s, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAdopted(t *testing.T) {
	for _, test := range []struct{ name, live, before, ours, want string }{
		{"terms of others are kept while ours are there", "a notin (x),b,c=1", "", "a notin (x),b", "a notin (x),b,c=1"},
		{"an empty selector of ours is in every one", "c=1", "", "", "c=1"},
		{"values in another order are the same", "a in (y,x),c", "", "a in (x,y)", "a in (y,x),c"},
		{"a label is a set of one value", "a in (x),c", "", "a=x", "a in (x),c"},
		{"more values excluded are stricter", "a notin (x,y)", "", "a notin (x)", "a notin (x,y)"},
		{"fewer values selected are stricter", "a in (x)", "", "a in (x,y)", "a in (x)"},
		{"without the label it has no excluded value", "!a", "", "a notin (x)", "!a"},
		{"another value is not an excluded one", "a=y", "", "a notin (x)", "a=y"},
		{"a value is more than the label", "a=y", "", "a", "a=y"},
		{"a term of ours is missing", "c=1", "", "a notin (x)", "a notin (x)"},
		{"more values selected are not stricter", "a in (x,y)", "", "a in (x)", "a in (x)"},
		{"fewer values excluded are not stricter", "a notin (x),c", "", "a notin (x,y)", "a notin (x,y)"},
		{"an excluded value is selected", "a in (x,y)", "", "a notin (x)", "a notin (x)"},
		{"a label may be there and must not", "a", "", "!a", "!a"},
		{"a term that is not ours any more goes, and theirs stays", "a notin (x),b,c", "a notin (x),b", "a notin (x)", "a notin (x),c"},
		{"a label that is not ours any more goes", "b=1,c=2", "b=1", "", "c=2"},
		{"a term that changed is not kept beside the new one", "a notin (x),c", "a notin (x)", "a notin (y)", "a notin (y)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := adopted(parse(t, test.live), parse(t, test.before), parse(t, test.ours))
			if diff := cmp.Diff(metav1.FormatLabelSelector(parse(t, test.want)), metav1.FormatLabelSelector(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAdoptedWithoutALiveSelectorIsOurs(t *testing.T) {
	ours := parse(t, "a")
	if got := adopted(nil, nil, ours); got != ours {
		t.Errorf("got %v", got)
	}
}

func TestHolds(t *testing.T) {
	type m = map[string]any
	hook := func(name string, timeout int) m { return m{"name": name, "timeoutSeconds": timeout} }
	for _, test := range []struct {
		name         string
		wanted, live m
		want         bool
	}{
		{"fields of others do not matter", m{"a": 1}, m{"a": 1, "b": 2}, true},
		{"another value", m{"a": 1}, m{"a": 2}, false},
		{"a field is missing", m{"a": m{"b": 1}}, m{"a": m{}}, false},
		{"nothing of ours is missing in nothing", m{"a": m{}, "l": []any{}}, m{}, true},
		{"webhooks of others do not matter", m{"w": []any{hook("a", 5)}}, m{"w": []any{hook("x", 1), hook("a", 5)}}, true},
		{"a webhook is missing", m{"w": []any{hook("a", 5), hook("b", 5)}}, m{"w": []any{hook("a", 5)}}, false},
		{"webhooks in another order", m{"w": []any{hook("a", 5), hook("b", 5)}}, m{"w": []any{hook("b", 5), hook("a", 5)}}, false},
		{"a webhook that was changed", m{"w": []any{hook("a", 5)}}, m{"w": []any{hook("a", 6)}}, false},
		{"a longer list without names", m{"l": []any{"v1"}}, m{"l": []any{"v1", "v2"}}, false},
		{"a list without names in another order", m{"l": []any{"v1", "v2"}}, m{"l": []any{"v2", "v1"}}, false},
		{"defaults in entries without names", m{"r": []any{m{"a": "b"}}}, m{"r": []any{m{"a": "b", "scope": "*"}}}, true},
		{"typed clients leave out the kind", m{"kind": "K", "apiVersion": "v1", "a": 1}, m{"a": 1}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Holds(test.wanted, test.live)
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
