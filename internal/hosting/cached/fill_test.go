// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	book  = schema.GroupKind{Group: "books.example.com", Kind: "Book"}
	shelf = schema.GroupKind{Group: "books.example.com", Kind: "Shelf"}
)

// serves maps the kinds that an API server has.
type serves struct {
	meta.RESTMapper
	kinds map[schema.GroupKind]meta.RESTScope
}

func (s serves) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if scope, ok := s.kinds[kind]; ok {
		return &meta.RESTMapping{Scope: scope}, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

// While a cache is made, a declared kind that is not served yet has a scope; nothing is guessed
// about other kinds, about served ones, and afterwards.
func TestKindsThatAreNotServedYetAreMapped(t *testing.T) {
	m := &lenientMapper{
		RESTMapper: serves{kinds: map[schema.GroupKind]meta.RESTScope{shelf: meta.RESTScopeRoot}},
		in:         map[schema.GroupKind]bool{book: true, shelf: true},
	}
	scope := func(kind schema.GroupKind) meta.RESTScopeName {
		t.Helper()
		mapping, err := m.RESTMapping(kind, "v1")
		if err != nil {
			if !meta.IsNoMatchError(err) {
				t.Error(err)
			}
			return ""
		}
		return mapping.Scope.Name()
	}
	if got := scope(book); got != meta.RESTScopeNameNamespace {
		t.Errorf("one in namespaces is %q", got)
	}
	m.in[book] = false
	if got := scope(book); got != meta.RESTScopeNameRoot {
		t.Errorf("one that may be anywhere is %q", got)
	}
	if got := scope(shelf); got != meta.RESTScopeNameRoot {
		t.Errorf("one that is served is %q", got)
	}
	if got := scope(schema.GroupKind{Kind: "Pod"}); got != "" {
		t.Errorf("one that is not declared is %q", got)
	}
	m.made.Store(true)
	if got := scope(book); got != "" {
		t.Errorf("afterwards it is %q", got)
	}
}

// A reason is told once, and again after it was another one; what is filled stays filled.
func TestAReasonIsToldOnce(t *testing.T) {
	k := &filled{}
	one, two := errors.New("one"), errors.New("two")
	for i, c := range []struct {
		reason error
		tell   bool
	}{{one, true}, {one, false}, {two, true}, {one, true}, {errors.New("one"), false}} {
		if got := k.is(false, c.reason); got != c.tell {
			t.Errorf("%d: told %t", i, got)
		}
		if err := k.ready(); !errors.Is(err, c.reason) && err.Error() != c.reason.Error() {
			t.Errorf("%d: not ready for %v", i, err)
		}
	}
	if k.is(false, nil); !errors.Is(k.ready(), errNotListed) {
		t.Errorf("before the first list: %v", k.ready())
	}
	k.is(true, nil)
	if k.is(false, two); k.ready() != nil {
		t.Errorf("filled, and then %v", k.ready())
	}
}
