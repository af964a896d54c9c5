// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// GoneAnnotation lists objects that selected the pod until recently but were deleted or
// now select other pods, each as NAME#VERSION with the name as in
// [meta.DecisionsAnnotation], sorted and separated by commas. It tells a reader with an
// outdated index that nothing is missing from the pod. See [Watcher.TellGone].
const GoneAnnotation = "sallyport.io/poddefaults-gone"

const (
	// KeptGone is how long such objects are remembered: longer than it takes until
	// another replica leads and has written its state.
	KeptGone = 2 * time.Minute
	// maxGone limits the remembered objects of a namespace.
	maxGone = 1000
)

// gone remembers objects that a watch has seen disappear.
type gone struct {
	now  func() time.Time
	last atomic.Pointer[time.Time] // of the latest; nil for never

	mu      sync.Mutex
	objects map[string][]goneObject // by namespace, oldest first
	swept   time.Time
}

type goneObject struct {
	text                 string
	selector, namespaces labels.Selector
	at                   time.Time
}

// changed records the new state of an object, nil if it was deleted.
func (g *gone) changed(before, now *plan.Plan) {
	if before == nil || !before.Injects() || now != nil && now.Injects() && now.Version() == before.Version() {
		return
	}
	at := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.Sub(g.swept) > KeptGone {
		for namespace := range g.objects {
			g.sweep(namespace, at)
		}
		g.swept = at
	}
	g.objects[before.Namespace()] = append(g.objects[before.Namespace()],
		goneObject{before.Decision() + "#" + before.Version(), before.Selector(), before.NamespaceSelector(), at})
	g.sweep(before.Namespace(), at)
	g.last.Store(&at)
}

func (g *gone) sweep(namespace string, now time.Time) {
	list := g.objects[namespace]
	for len(list) > maxGone || len(list) > 0 && now.Sub(list[0].at) > KeptGone {
		list = list[1:]
	}
	if g.objects[namespace] = list; len(list) == 0 {
		delete(g.objects, namespace)
	}
}

// selected returns the entries of objects that would have selected a pod.
func (g *gone) selected(namespace string, set labels.Set, pod labels.Labels) (texts []string) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range []string{namespace, ""} {
		for _, o := range g.objects[of] {
			if now.Sub(o.at) <= KeptGone && (o.namespaces == nil || o.namespaces.Matches(set)) && o.selector.Matches(pod) {
				texts = append(texts, o.text)
			}
		}
	}
	return texts
}

// SetClock sets what tells the time, for tests.
func (w *Watcher) SetClock(now func() time.Time) { w.gone.now, w.index.now = now, now }

// none reports whether nothing disappeared lately. It is cheap.
func (g *gone) none() bool {
	last := g.last.Load()
	return last == nil || g.now().Sub(*last) > KeptGone // clocks may be set in between
}

// TellGone adds [GoneAnnotation] to admitted pods where necessary. It is for webhooks
// with a backstop: one replica writes what its policy reads, and for a while there may
// be none.
func (w *Watcher) TellGone(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		response, err := next.Handle(ctx, req)
		if err != nil || !response.Allowed || w.gone.none() || req.Operation != admissionv1.Create || req.SubResource != "" {
			return response, err
		}
		md, ok := meta.ReadMetadata(req.Object.Raw)
		if !ok || md.Annotations.Has(meta.MirrorAnnotation) || md.Annotations.Get(meta.ExcludeAnnotation) == "true" {
			return response, nil
		}
		namespace := md.Namespace
		if namespace == "" {
			namespace = req.Namespace
		}
		pod := labels.Set{}
		for _, l := range md.Labels.List {
			pod[string(l.Key)] = string(l.Value)
		}
		addedLabels(response.Patch, pod)
		set, _ := w.index.NamespaceLabels(namespace)
		texts := w.gone.selected(namespace, set, pod)
		told := md.Annotations.Get(GoneAnnotation)
		if told != "" {
			texts = append(texts, strings.Split(told, ",")...)
		}
		slices.Sort(texts)
		value := strings.Join(slices.Compact(texts), ",")
		if value == told {
			return response, nil
		}
		out := *response
		out.Patch = append(slices.Clip(response.Patch), tellGone(response.Patch, md.RawAnnotations, value))
		return &out, nil
	})
}

// tellGone returns the operation to append to a patch.
func tellGone(patch jsonpatch.Patch, annotations jsontext.Value, value string) jsonpatch.Operation {
	there := len(annotations) > 0 && annotations.Kind() == '{' || slices.ContainsFunc(patch, func(op jsonpatch.Operation) bool {
		return strings.HasPrefix(op.Path, plan.AnnotationsPath)
	})
	if there {
		return jsonpatch.Operation{Op: "add", Path: plan.AnnotationsPath + "/" + strings.ReplaceAll(GoneAnnotation, "/", "~1"), Value: meta.Quote(value)}
	}
	return jsonpatch.Operation{Op: "add", Path: plan.AnnotationsPath, Value: plan.Encode(map[string]string{GoneAnnotation: value})}
}

// addedLabels adds the labels of a patch to those of a pod.
func addedLabels(patch jsonpatch.Patch, to labels.Set) {
	for _, op := range patch {
		rest, ok := strings.CutPrefix(op.Path, plan.LabelsPath)
		if !ok {
			continue
		}
		if rest == "" {
			var all map[string]string
			if json.Unmarshal(op.Value, &all) == nil {
				for key, value := range all {
					to[key] = value
				}
			}
			continue
		}
		var value string
		if json.Unmarshal(op.Value, &value) == nil {
			to[strings.NewReplacer("~1", "/", "~0", "~").Replace(rest[1:])] = value
		}
	}
}
