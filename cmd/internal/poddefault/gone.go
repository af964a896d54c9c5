// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// GoneAnnotation lists objects that selected the pod until recently but were deleted or
// now select other pods, each as NAME#VERSION with the name as in
// [meta.DecisionsAnnotation], sorted and separated by commas. It tells a reader with an
// outdated index that nothing is missing from the pod. See [Watcher.TellGone].
const GoneAnnotation = "sallyport.io/poddefaults-gone"

const (
	// keptGone is how long such objects are remembered: longer than it takes until
	// another replica leads and has written its state.
	keptGone = 2 * time.Minute
	// mostGone limits the remembered objects of a namespace.
	mostGone = 1000
)

// Version identifies the parts of an object that select pods. It changes with the
// selectors, and when the object is deleted and recreated.
func (c *Compiled) Version() string { return c.version }

func versionOf(uid types.UID, selector, namespaces *metav1.LabelSelector) string {
	buffer := meta.Encoding.Get().(*[]byte)
	defer meta.Encoding.Put(buffer)
	encoded := append((*buffer)[:0], '[') //nolint:gocritic // the buffer is put back
	for i, part := range [...]any{uid, selector, namespaces} {
		if i > 0 {
			encoded = append(encoded, ',')
		}
		encoded, _ = jsonpatch.AppendValue(encoded, part) // maps are sorted
	}
	encoded = append(encoded, ']')
	*buffer = encoded
	sum := sha256.Sum256(encoded)
	var text [43]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return string(text[:6])
}

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
func (g *gone) changed(before, now *Compiled) {
	if before == nil || !before.Injects() || now != nil && now.Injects() && now.version == before.version {
		return
	}
	at := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.Sub(g.swept) > keptGone {
		for namespace := range g.objects {
			g.sweep(namespace, at)
		}
		g.swept = at
	}
	g.objects[before.namespace] = append(g.objects[before.namespace],
		goneObject{before.decision + "#" + before.version, before.selector, before.namespaces, at})
	g.sweep(before.namespace, at)
	g.last.Store(&at)
}

func (g *gone) sweep(namespace string, now time.Time) {
	list := g.objects[namespace]
	for len(list) > mostGone || len(list) > 0 && now.Sub(list[0].at) > keptGone {
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
			if now.Sub(o.at) <= keptGone && (o.namespaces == nil || o.namespaces.Matches(set)) && o.selector.Matches(pod) {
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
	return last == nil || g.now().Sub(*last) > keptGone // clocks may be set in between
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
		md, ok := readMetadata(req.Object.Raw)
		if !ok || md.annotations.Has(meta.MirrorAnnotation) || md.annotations.Get(meta.ExcludeAnnotation) == "true" {
			return response, nil
		}
		namespace := md.namespace
		if namespace == "" {
			namespace = req.Namespace
		}
		pod := labels.Set{}
		for _, l := range md.labels.list {
			pod[string(l.key)] = string(l.value)
		}
		addedLabels(response.Patch, pod)
		texts := w.gone.selected(namespace, w.index.NamespaceLabels(namespace), pod)
		told := md.annotations.Get(GoneAnnotation)
		if told != "" {
			texts = append(texts, strings.Split(told, ",")...)
		}
		slices.Sort(texts)
		value := strings.Join(slices.Compact(texts), ",")
		if value == told {
			return response, nil
		}
		out := *response
		out.Patch = append(slices.Clip(response.Patch), tellGone(response.Patch, md.rawAnnotations, value))
		return &out, nil
	})
}

const annotationsPath, labelsPath = "/metadata/annotations", "/metadata/labels"

// tellGone returns the operation to append to a patch.
func tellGone(patch jsonpatch.Patch, annotations jsontext.Value, value string) jsonpatch.Operation {
	there := len(annotations) > 0 && annotations.Kind() == '{' || slices.ContainsFunc(patch, func(op jsonpatch.Operation) bool {
		return strings.HasPrefix(op.Path, annotationsPath)
	})
	if there {
		return jsonpatch.Operation{Op: "add", Path: annotationsPath + "/" + strings.ReplaceAll(GoneAnnotation, "/", "~1"), Value: quote(value)}
	}
	return jsonpatch.Operation{Op: "add", Path: annotationsPath, Value: encode(map[string]string{GoneAnnotation: value})}
}

// addedLabels adds the labels of a patch to those of a pod.
func addedLabels(patch jsonpatch.Patch, to labels.Set) {
	for _, op := range patch {
		rest, ok := strings.CutPrefix(op.Path, labelsPath)
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
