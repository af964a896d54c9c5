// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
)

func TestASourceIsAskedForFreshObjectsOnlyIfConsistencyIsWanted(t *testing.T) {
	from := &refreshing{Index: source.NewIndex(), fresh: indexOf(podtest.PodDefaults(t, []byte("metadata: {name: new}\nspec: {selector: {}, env: [{name: A, value: b}]}"))...)}
	for _, freshness := range Freshnesses() {
		settings := DefaultSettings()
		settings.Freshness = freshness
		webhook, err := New(from, settings)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := webhook.Handler.Handle(t.Context(), createRequest([]byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`)))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(resp.Patch) > 0; got != (freshness == Consistent) {
			t.Errorf("%s: changed is %v", freshness, got)
		}
	}
	settings := DefaultSettings()
	settings.Freshness = "fresh"
	if _, err := New(from, settings); err == nil {
		t.Error("an unknown freshness was taken")
	}
}

type refreshing struct {
	*source.Index
	fresh *source.Index
}

func (r *refreshing) Fresh(context.Context, string) (match.Source, error) { return r.fresh, nil }
