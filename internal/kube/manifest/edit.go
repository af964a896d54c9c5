// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EditMetadata returns the object with changed metadata. The text of everything else is
// preserved.
func (o *Object) EditMetadata(change func(meta map[string]any)) (*Object, error) {
	body, meta := map[string]jsontext.Value{}, map[string]any{}
	if err := json.Unmarshal(o.Raw, &body); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", o.At(), o.Title(), err)
	}
	if given := body["metadata"]; given.Kind() == '{' {
		if err := json.Unmarshal(given, &meta); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", o.At(), o.Title(), err)
		}
	}
	change(meta)
	raw, err := json.Marshal(meta, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	body["metadata"] = raw
	out := *o
	if out.Raw, err = json.Marshal(body, json.Deterministic(true)); err != nil {
		return nil, err
	}
	out.ObjectMeta = metav1.ObjectMeta{}
	return &out, json.Unmarshal(raw, &out.ObjectMeta)
}
