// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

type word struct{ text string }

func appends(name string, stop bool, err error) Factory[*word] {
	return func(args string) (Plugin[*word], error) {
		if args == "bad" {
			return nil, errors.New("they are bad")
		}
		return Func[*word](func(_ context.Context, w *word) (bool, error) {
			w.text += name + args
			return stop, err
		}), nil
	}
}

func registry(err error) Registry[*word] {
	return Registry[*word]{"a": appends("a", false, nil), "b": appends("b", false, nil), "stop": appends("stop", true, nil), "fail": appends("fail", false, err)}
}

func TestPluginsAreAskedInOrderUntilOneStops(t *testing.T) {
	c, err := registry(nil).Build([]string{"b", "a", "stop", "fail"}, map[string]string{"a": "1"})
	if err != nil {
		t.Fatal(err)
	}
	w := &word{}
	var seen []string
	if err := c.Run(t.Context(), w, func(name string, _ bool, _ error) { seen = append(seen, name) }); err != nil {
		t.Fatal(err)
	}
	if w.text != "ba1stop" || !slices.Equal(seen, []string{"b", "a", "stop"}) {
		t.Errorf("%q was made by %v", w.text, seen)
	}
}

func TestAnErrorEndsTheChainAndNamesThePlugin(t *testing.T) {
	cause := errors.New("a cause")
	c, err := registry(cause).Build([]string{"fail", "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &word{}
	var seen error
	err = c.Run(t.Context(), w, func(_ string, _ bool, err error) { seen = err })
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "plugin fail") || w.text != "fail" || !errors.Is(seen, cause) {
		t.Errorf("%q after %v, observed %v", w.text, err, seen)
	}
}

func TestAChainEndsWithItsContext(t *testing.T) {
	c, err := registry(nil).Build([]string{"a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &word{}
	if err := c.Run(ctx, w, func(string, bool, error) { t.Error("a plugin was asked") }); !errors.Is(err, context.Canceled) || w.text != "" {
		t.Errorf("%q after %v", w.text, err)
	}
}

func TestBuildReportsEveryProblem(t *testing.T) {
	_, err := registry(nil).Build([]string{"a", "c", "b", "a"}, map[string]string{"b": "bad"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`there is no plugin "c": choose among a, b, fail, stop`, "arguments of b: they are bad", "duplicate plugin a"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}
