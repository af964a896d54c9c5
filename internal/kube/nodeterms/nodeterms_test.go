// SPDX-License-Identifier: Apache-2.0

package nodeterms

import (
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

func read(t testing.TB, raw string) []Term {
	t.Helper()
	r := rawjson.NewReader([]byte(raw))
	terms, ok := Read(&r)
	if !ok {
		t.Fatalf("%s is read as malformed", raw)
	}
	return terms
}

func TestMalformedTermsAreReported(t *testing.T) {
	for raw, want := range map[string]bool{
		`null`:                            true,
		`[]`:                              true,
		`[{}]`:                            true,
		`[{"matchExpressions":null}]`:     true,
		`[{"matchExpressions":[],"x":1}]`: true,
		`[{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}]`: true,
		`[{"matchExpressions":[{"key":"a","operator":"Exists"}]}, {}]`:        true,
		`{}`:                                 false,
		`"x"`:                                false,
		`[null]`:                             false,
		`[1]`:                                false,
		`[{"matchExpressions":{}}]`:          false,
		`[{"matchExpressions":[1]}]`:         false,
		`[{"matchExpressions":[{"key":1}]}]`: false,
		`[{"matchFields":[{"values":[1]}]}]`: false,
		`[{"matchFields":[{"values":["a"]}]}, [1]]`: false,
	} {
		r := rawjson.NewReader([]byte(raw))
		if _, got := Read(&r); got != want {
			t.Errorf("%s: well-formed is %t", raw, got)
		}
	}
}

func TestRequirementsAreVisitedUntilToldOtherwise(t *testing.T) {
	term := jsontext.Value(`{"matchFields":[{"key":"f"}],"later":[1],"matchExpressions":[{"key": "a"},null]}`)
	for most, want := range map[int]string{
		1: `matchFields={"key":"f"};`,
		2: `matchFields={"key":"f"};matchExpressions={"key": "a"};`,
		9: `matchFields={"key":"f"};matchExpressions={"key": "a"};matchExpressions=null;`,
	} {
		got := ""
		Each(term, func(field string, requirement jsontext.Value) bool {
			got += field + "=" + string(requirement) + ";"
			most--
			return most > 0
		})
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestWhatIsAddedChangesNothingElse: what was there keeps its bytes and its order, and unknown members stay.
func TestWhatIsAddedChangesNothingElse(t *testing.T) {
	for name, test := range map[string]struct{ raw, want string }{
		"an empty term":         {`{}`, `{"matchExpressions":[{"key":"new","operator":"In","values":["true"]}]}`},
		"null":                  {`{"matchExpressions":null}`, `{"matchExpressions":[{"key":"new","operator":"In","values":["true"]}]}`},
		"only fields":           {`{"matchFields": [ {"key":"metadata.name"} ]}`, `{"matchFields":[ {"key":"metadata.name"} ],"matchExpressions":[{"key":"new","operator":"In","values":["true"]}]}`},
		"what nobody knows yet": {`{"later":{"a": 1},"matchExpressions":[ {"key": "a","operator":"Exists","later":9007199254740993} ]}`, `{"later":{"a": 1},"matchExpressions":[{"key": "a","operator":"Exists","later":9007199254740993},{"key":"new","operator":"In","values":["true"]}]}`},
		"it has that already":   {`{"matchExpressions": [{"operator":"In","values":["true"],"key":"new"}]}`, `{"matchExpressions": [{"operator":"In","values":["true"],"key":"new"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			had := ReadTerm(jsontext.Value(test.raw))
			with := had.With([]Requirement{New("new", In, "true")})
			if got := string(with.Encode()); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if again := ReadTerm(with.Encode()); len(again.With([]Requirement{New("new", In, "true")}).Added) > 0 {
				t.Error("it is added again")
			}
		})
	}
}

// TestTermsAreReadAsTheAPIServerReadsThem: terms of typed objects keep their meaning when they are read and written.
func TestTermsAreReadAsTheAPIServerReadsThem(t *testing.T) {
	text := rapid.SampledFrom([]string{"a", "b", "zone/\"quoted\"", ""})
	requirements := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{
			Key: text.Draw(t, "key"), Operator: corev1.NodeSelectorOperator(rapid.SampledFrom([]string{In, NotIn, Exists, DoesNotExist}).Draw(t, "operator")),
			Values: rapid.SliceOfN(text, 0, 3).Draw(t, "values"),
		}
	}), 0, 3)
	rapid.Check(t, func(rt *rapid.T) {
		typed := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm {
			return corev1.NodeSelectorTerm{MatchExpressions: requirements.Draw(t, "expressions"), MatchFields: requirements.Draw(t, "fields")}
		}), 0, 3).Draw(rt, "terms")
		raw, err := json.Marshal(typed)
		if err != nil {
			rt.Fatal(err)
		}
		terms := read(t, string(raw))
		added := New("new", Exists)
		for i := range terms {
			if terms[i].Empty() != (len(typed[i].MatchExpressions)+len(typed[i].MatchFields) == 0) {
				rt.Fatalf("term %d: empty is %t", i, terms[i].Empty())
			}
			terms[i] = terms[i].With([]Requirement{added})
			typed[i].MatchExpressions = append(typed[i].MatchExpressions, corev1.NodeSelectorRequirement{Key: "new", Operator: Exists})
		}
		var got []corev1.NodeSelectorTerm
		if err := json.Unmarshal(AppendTerms(nil, terms...), &got); err != nil {
			rt.Fatal(err)
		}
		want, err := json.Marshal(typed)
		if err != nil {
			rt.Fatal(err)
		}
		if have, _ := json.Marshal(got); string(have) != string(want) && len(typed) > 0 {
			rt.Fatalf("got %s, want %s", have, want)
		}
	})
}
