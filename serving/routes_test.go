// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"strings"
	"testing"
)

func TestARouteIsServedAsSoonAsItIsAdded(t *testing.T) {
	h := start(t, func(o *Options) { o.Routes = []Route{{Path: "/first", Handler: echo}} })
	h.post("/second", "x").expect(t, http.StatusNotFound, "no webhook")
	if err := h.Handle(Route{Path: "/second", Handler: echo}); err != nil {
		t.Fatal(err)
	}
	h.post("/second", "two").expect(t, http.StatusOK, "two")
	h.post("/first", "one").expect(t, http.StatusOK, "one")
}

func TestARouteWithAProblemIsNotAdded(t *testing.T) {
	h := start(t, func(o *Options) { o.Routes = []Route{{Path: "/first", Handler: echo}} })
	for name, test := range map[string]struct {
		route Route
		want  string
	}{
		"a path that is taken":      {Route{Path: "/first", Handler: echo}, `path "/first" is already in use`},
		"a path of the probes":      {Route{Path: "/livez", Handler: echo}, `path "/livez" is already in use`},
		"a path without a slash":    {Route{Path: "x", Handler: echo}, "must start with a slash"},
		"a path that nobody serves": {Route{Path: "/x"}, "has no handler"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := h.Handle(test.route); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want it to say %q", err, test.want)
			}
		})
	}
	h.post("/x", "").expect(t, http.StatusNotFound, "")
}
