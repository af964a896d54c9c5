// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
)

type someKeys struct {
	keys []string
	ok   bool
}

func (s *someKeys) RequiredKeys() ([]string, bool) { return s.keys, s.ok }

func TestNarrowingFollowsTheKeys(t *testing.T) {
	source, wanted := &someKeys{}, true
	n := &narrowing{source: source, wanted: func() bool { return wanted }}
	webhooks := []admission.Webhook{{Name: "other.sallyport.io"}, {Name: poddefault.Name}}
	expression := func() string {
		out := n.apply(webhooks)
		if len(out[0].MatchConditions) > 0 || len(webhooks[1].MatchConditions) > 0 {
			t.Fatal("another webhook is narrowed, or the definition itself")
		}
		if len(out[1].MatchConditions) == 0 {
			return ""
		}
		return out[1].MatchConditions[0].Expression
	}
	if n.look() || expression() != "" {
		t.Error("it is narrowed before the keys are known")
	}
	source.ok = true
	if !n.look() || expression() != "false" {
		t.Errorf("without objects: %q", expression())
	}
	source.keys = []string{"a", "example.com/b"}
	if !n.look() || n.look() || !strings.Contains(expression(), "['a', 'example.com/b'].exists(k, k in object.metadata.labels)") {
		t.Errorf("with two keys: %q", expression())
	}
	if wanted = false; expression() != "" {
		t.Error("it is narrowed although nobody wants it")
	}
	wanted, source.ok = true, false
	if !n.look() || expression() != "" {
		t.Error("it is narrowed although some object needs no label")
	}
}
