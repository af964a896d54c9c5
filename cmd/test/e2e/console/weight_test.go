// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

var bigger = flag.Int("bigger", 1, "how many times 60 namespaces, 200 PodDefaults and 1,000 pods are in the cluster whose pages are weighed")

// maxWeight is how much a page and what it loads may have, in bytes.
const maxWeight = 100 << 10

// testWeight measures what a browser gets of each page: in a cluster with many pods, the frame comes before the content.
// Times are logged, because they depend on the machine.
func testWeight(t *testing.T, b *tab) {
	b.fill(t)
	b.screen(t, 1280, 800, "light")
	b.open(t, "")
	for _, page := range sitemap {
		b.open(t, page.path)
		var weight struct {
			First, Loaded float64 // milliseconds
			Bytes, Files  int
		}
		raw := evaluate[string](t, b, `(async () => {
			const entry = await new Promise((resolve) => new PerformanceObserver((list) => {
				const first = list.getEntriesByName("first-contentful-paint")[0];
				if (first) { resolve(first); }
			}).observe({type: "paint", buffered: true}));
			const page = performance.getEntriesByType("navigation")[0];
			const files = [page, ...performance.getEntriesByType("resource").filter((one) => one.initiatorType !== "other" && one.initiatorType !== "fetch")];
			return JSON.stringify({first: entry.startTime, loaded: page.responseEnd, files: files.length, bytes: files.reduce((sum, one) => sum + one.decodedBodySize, 0)});
		})()`)
		check(t, json.Unmarshal([]byte(raw), &weight))
		t.Logf("%-12s first contentful paint after %4.0f ms, all after %4.0f ms, %3d KB in %d files", page.name, weight.First, weight.Loaded, weight.Bytes>>10, weight.Files)
		if weight.Bytes > maxWeight || weight.Bytes == 0 {
			t.Errorf("%s has %d bytes, of %d", page.name, weight.Bytes, maxWeight)
		}
		if shown := evaluate[bool](t, b, `document.querySelector(".reading") !== null`); shown {
			t.Errorf("%s says that it is being read, and has its content", page.name)
		}
		if title, heading := evaluate[string](t, b, `document.title`), evaluate[string](t, b, `document.querySelector("h1").textContent`); title != heading+" - Sallyport" {
			t.Errorf("%s has the title %q and the heading %q", page.name, title, heading)
		}
	}
}

// fill creates many objects.
func (b *tab) fill(t *testing.T) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	create := func(o client.Object) { group.Go(func() error { return b.client.Create(t.Context(), o) }) }
	name := func(i int) string { return fmt.Sprintf("many-%d", i%(60**bigger)) }
	for i := range 60 * *bigger {
		create(namespace(name(i)))
	}
	check(t, group.Wait())
	for i := range 200 * *bigger {
		o := &kubeflowv1alpha1.PodDefault{}
		proxy(name(i)).DeepCopyInto(o)
		o.Name = fmt.Sprintf("default-%d", i)
		o.Spec.Selector.MatchLabels = map[string]string{"uses": "default"}
		create(o)
	}
	check(t, group.Wait())
	annotations := map[string]string{meta.Mark("default-0"): "1", "example.com/large": strings.Repeat("x", 2<<10)}
	for i := range 1_000 * *bigger {
		in := name(i)
		if i%2 == 0 {
			in = "many-0" // which has half of them
		}
		o := pod(in, fmt.Sprintf("pod-%d", i), map[string]string{"used": "before"})
		o.Annotations = maps.Clone(annotations)
		create(o)
	}
	check(t, group.Wait())
}
