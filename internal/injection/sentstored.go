// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/recording"
	"github.com/sallyport-io/sallyport/internal/replay/review"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/workload"
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
	return nil
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
	Annotations: []string{poddefault.DecisionsAnnotation, poddefault.ExcludeAnnotation, poddefault.MarkPrefix + "*", poddefault.ClusterMarkPrefix + "*", poddefault.SkipPrefix + "*"},
	Mask: func(value string) string {
		code := hmac.New(sha256.New, key)
		code.Write([]byte(value))
		return "hidden " + hex.EncodeToString(code.Sum(nil)[:3])
	},
}

// key keeps others from finding a value by its code.
var key = []byte(rand.Text())
