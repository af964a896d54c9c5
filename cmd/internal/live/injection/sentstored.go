// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// compare keeps the pod as it was sent and as it is stored, or would be. The PodDefaults of the
// cluster tell the origins of changes, also in a pod that was admitted earlier.
func (e *Explanation) compare(sent *manifest.Object, out *review.Outcome, stored *manifest.Object) error {
	e.Sent, e.stored, e.origins = sent, out.After, out.Origins()
	if stored == nil {
		return nil
	}
	var err error
	if e.stored, err = Authored(stored); err != nil {
		return err
	}
	e.origins = nil
	for _, origin := range out.Origins() {
		if pointer, found := workload.Relocate(out.After, origin.Path, e.stored); found {
			e.origins = append(e.origins, admission.Origin{Path: pointer, Source: origin.Source})
		}
	}
	raw := without(e.stored, e.origins)
	if e.Basis != containersAlone {
		if raw, err = Authored(sent); err != nil {
			return err
		}
	}
	e.Sent = sent.Part("", raw, sent.TypeMeta, sent.ObjectMeta)
	return nil
}

// SentFrom says where the pod before admission is from; empty if it was given.
func (e *Explanation) SentFrom() string {
	if e.Basis == containersAlone {
		return "not known; it is shown as it is stored, without what PodDefaults added"
	}
	return e.Basis
}

// without removes what has an origin: the last element of a list first, and what is in an object
// before the object. Values that were replaced are not known.
func without(object jsontext.Value, origins []admission.Origin) jsontext.Value {
	origins = slices.SortedStableFunc(slices.Values(origins), func(a, b admission.Origin) int {
		return slices.CompareFunc(slices.Collect(jsontext.Pointer(b.Path).Tokens()), slices.Collect(jsontext.Pointer(a.Path).Tokens()), compareTokens)
	})
	for _, origin := range origins {
		parent := string(jsontext.Pointer(origin.Path).Parent())
		for _, patch := range [][]map[string]any{ // an object or list that it leaves empty came with it
			{{"op": "remove", "path": origin.Path}},
			{{"op": "test", "path": parent, "value": []any{}}, {"op": "remove", "path": parent}},
			{{"op": "test", "path": parent, "value": map[string]any{}}, {"op": "remove", "path": parent}},
		} {
			raw, err := json.Marshal(patch)
			if err != nil {
				continue
			}
			if left, err := replay.Apply(object, raw); err == nil { // else it is gone with its parent, or not empty
				object = left
			}
		}
	}
	return object
}

// compareTokens compares indexes of a list by their value.
func compareTokens(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Authored returns an object of a cluster without its status and what the API server and
// controllers keep in its metadata.
func Authored(o *manifest.Object) (jsontext.Value, error) {
	clean, err := o.EditMetadata(func(meta map[string]any) {
		for _, name := range []string{"creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid"} {
			delete(meta, name)
		}
	})
	if err != nil {
		return nil, err
	}
	var body map[string]jsontext.Value
	if err := json.Unmarshal(clean.Raw, &body); err != nil {
		return nil, err
	}
	delete(body, "status")
	return json.Marshal(body, json.Deterministic(true))
}

// Lines returns the pod as it was sent and as it is stored, or would be stored, with the origin of
// each changed line. What the API server keeps about an object is left out. Unless values is set, a
// code replaces each value of an environment variable or annotation; equal values have equal codes.
func (e *Explanation) Lines(values bool) ([]review.Line, error) {
	return lines(e.Sent.Raw, e.stored, nil, e.origins, values)
}

// Lines returns the pod before and after the change as [Explanation.Lines] does.
func (c *Change) Lines(values bool) ([]review.Line, error) {
	o := c.Outcome()
	return lines(o.Before, o.After, o.OriginsBefore, o.Origins(), values)
}

func lines(before, after jsontext.Value, originsBefore, origins []admission.Origin, values bool) ([]review.Line, error) {
	if !values {
		var err error
		if before, err = hidden.Object(before); err != nil {
			return nil, err
		}
		if after, err = hidden.Object(after); err != nil {
			return nil, err
		}
	}
	hunks, err := review.Hunks(before, after, originsBefore, origins, math.MaxInt32)
	switch {
	case err != nil:
		return nil, err
	case len(hunks) == 0:
		return review.Unchanged(before)
	}
	return hunks[0].Lines, nil
}

// hidden shows what Sallyport notes about a pod, and which values are equal.
var hidden = recording.Redaction{
	Annotations: []string{meta.DecisionsAnnotation, meta.RevisionsAnnotation, meta.ExcludeAnnotation, meta.MarkPrefix + "*", meta.ClusterMarkPrefix + "*", meta.SkipPrefix + "*"},
	Mask: func(value string) string {
		code := hmac.New(sha256.New, key)
		code.Write([]byte(value))
		return "hidden " + hex.EncodeToString(code.Sum(nil)[:3])
	},
}

// key keeps others from finding a value by its code.
var key = []byte(rand.Text())
