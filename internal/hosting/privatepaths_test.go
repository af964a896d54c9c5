// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/serving"
)

type withKeys struct {
	certificate.Source
	keys [][]byte
}

func (w *withKeys) PathKeys() [][]byte { return w.keys }

var always = &PrivatePaths{Mode: PrivatePathsAlways}

// TestPrivatePathsChangeWithoutACallThatFails: during a rolling update, servers with private
// paths and servers without them run side by side.
func TestPrivatePathsChangeWithoutACallThatFails(t *testing.T) {
	const private = "/a/0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		mode       string
		registered []string
		unknown    bool
		// Whether private paths are registered, and whether plain paths are served.
		chosen, plain bool
	}{
		"a new installation":                            {mode: PrivatePathsAuto, chosen: true},
		"one that has them":                             {mode: PrivatePathsAuto, registered: []string{private}, chosen: true},
		"one from before":                               {mode: PrivatePathsAuto, registered: []string{"/a"}, plain: true},
		"one that is half of it":                        {mode: PrivatePathsAuto, registered: []string{private, "/b"}, plain: true},
		"nobody has seen yet what is registered":        {mode: PrivatePathsAuto, unknown: true, plain: true},
		"switched on while the API server calls others": {mode: PrivatePathsAlways, registered: []string{"/a"}, chosen: true, plain: true},
		"switched on, and the API server knows":         {mode: PrivatePathsAlways, registered: []string{private}, chosen: true},
		"switched off":                                  {mode: PrivatePathsNever, registered: []string{private}, plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			options := &PrivatePaths{Mode: tc.mode, Shared: true}
			p, err := options.over(&withKeys{keys: [][]byte{[]byte("key")}}, func() ([]string, bool) { return tc.registered, !tc.unknown })
			if err != nil || p == nil {
				t.Fatalf("%v, %v", p, err)
			}
			if got := !isPlain(p.registered("/a")); got != tc.chosen {
				t.Errorf("private paths are registered: %t", got)
			}
			if got := p.plain(); got != tc.plain {
				t.Errorf("others are answered: %t", got)
			}
			if err := p.known(); (err != nil) != tc.unknown {
				t.Errorf("known: %v", err)
			}
			if len(p.segments("/a")) != 1 {
				t.Error("private paths are not answered")
			}
		})
	}
}

func TestPathsArePlainWhereNobodyKnowsOthers(t *testing.T) {
	for name, options := range map[string]*PrivatePaths{
		"nobody asked for them":         nil,
		"replicas do not have the same": {Mode: PrivatePathsAuto},
		"switched off":                  {Mode: PrivatePathsNever},
	} {
		if p, err := options.over(&withKeys{}, nil); p != nil || err != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestPlainPathsAreAnsweredForAWhileAfterTheyWereRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registered := []string{"/a"}
		p := &privatePaths{keys: &withKeys{}, mode: PrivatePathsAlways, live: func() ([]string, bool) { return registered, true }}
		if !p.plain() {
			t.Error("the API server calls a path that nobody answers")
		}
		registered = nil
		time.Sleep(stillCalled - time.Second)
		if !p.plain() {
			t.Error("an API server that has not heard of the change is refused")
		}
		time.Sleep(2 * time.Second)
		if p.plain() {
			t.Error("others are answered for ever")
		}
	})
}

func TestPrivatePathsFollowTheKeys(t *testing.T) {
	source := &withKeys{}
	private, err := always.over(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	if private.ready() == nil || len(private.segments("/a")) != 0 {
		t.Error("there are paths without a key")
	}
	source.keys = [][]byte{[]byte("first")}
	first := private.segments("/a")
	if len(first) != 1 || len(first[0]) != 32 || private.ready() != nil {
		t.Fatalf("segments %q", first)
	}
	if other := private.segments("/b"); other[0] == first[0] {
		t.Error("who knows one path knows another")
	}
	webhooks := []admission.Webhook{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b"}}
	registered := private.onWebhooks(webhooks)
	if registered[0].Path != "/a/"+first[0] || webhooks[0].Path != "/a" {
		t.Errorf("registered %q, defined %q", registered[0].Path, webhooks[0].Path)
	}

	source.keys = [][]byte{[]byte("second"), []byte("first")} // as during a CA rotation
	second := private.segments("/a")
	if len(second) != 2 || second[0] == first[0] || second[1] != first[0] {
		t.Errorf("segments %q, before %q", second, first)
	}
	if path := private.onWebhooks(webhooks)[0].Path; path != "/a/"+second[0] {
		t.Errorf("registered %q", path)
	}
}

func TestPrivatePathsAreServedAndRegisteredAlike(t *testing.T) {
	source := &withKeys{keys: [][]byte{[]byte("key")}}
	private, err := always.over(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := serving.DefaultOptions()
	(&Host{private: private}).guard(&options)
	if len(options.Checks) != 1 || options.Checks[0].Ready() != nil || !options.Checks[0].Gate {
		t.Errorf("checks %+v", options.Checks)
	}
	registered := private.onWebhooks([]admission.Webhook{{Path: "/a"}})[0].Path
	if want := "/a/" + options.PathSegments("/a")[0]; registered != want {
		t.Errorf("registered %q, served %q", registered, want)
	}
}

func TestASourceWithoutKeysHasNoPrivatePaths(t *testing.T) {
	files := struct{ certificate.Source }{}
	if _, err := always.over(files, nil); err == nil || !strings.Contains(err.Error(), "private paths") {
		t.Errorf("got %v", err)
	}
}
