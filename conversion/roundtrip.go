// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// Difference is a difference after a round trip. It never contains a value.
type Difference struct {
	// Path is a JSON pointer (RFC 6901).
	Path string
	// Change is "lost", "changed" or "added".
	Change string
}

const (
	lost    = "lost"
	changed = "changed"
	added   = "added"
)

func (d Difference) String() string { return d.Path + " " + d.Change }

// RoundTrip converts an object to another version and back. It returns the differences in the
// order of their paths. Empty labels and annotations equal absent ones.
func (c Converter) RoundTrip(ctx context.Context, raw []byte, version string) ([]Difference, error) {
	in, err := rawobject.Parse(raw)
	if err != nil {
		return nil, err
	}
	_, own := rawobject.SplitAPIVersion(in.APIVersion)
	there, err := c.Append(ctx, nil, in, version)
	if err != nil {
		return nil, fmt.Errorf("to %s: %w", version, err)
	}
	back, err := c.Convert(ctx, there, own)
	if err != nil {
		return nil, fmt.Errorf("back to %s: %w", own, err)
	}
	before, err := decode.Tree(raw)
	if err != nil {
		return nil, err
	}
	after, err := decode.Tree(back)
	if err != nil {
		return nil, err
	}
	for _, tree := range []any{before, after} {
		dropEmpty(tree)
	}
	return differences(nil, "", before, after), nil
}

func dropEmpty(tree any) {
	object, _ := tree.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		if values, _ := metadata[field].(map[string]any); len(values) == 0 {
			delete(metadata, field)
		}
	}
}

func differences(list []Difference, path string, before, after any) []Difference {
	switch before := before.(type) {
	case map[string]any:
		after, ok := after.(map[string]any)
		if !ok {
			return append(list, Difference{path, changed})
		}
		names := slices.Collect(maps.Keys(before))
		for name := range after {
			if _, there := before[name]; !there {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			was, had := before[name]
			is, has := after[name]
			at := path + "/" + escaper.Replace(name)
			switch {
			case !has:
				list = append(list, Difference{at, lost})
			case !had:
				list = append(list, Difference{at, added})
			default:
				list = differences(list, at, was, is)
			}
		}
	case []any:
		after, ok := after.([]any)
		if !ok {
			return append(list, Difference{path, changed})
		}
		for i := range max(len(before), len(after)) {
			at := path + "/" + strconv.Itoa(i)
			switch {
			case i >= len(after):
				list = append(list, Difference{at, lost})
			case i >= len(before):
				list = append(list, Difference{at, added})
			default:
				list = differences(list, at, before[i], after[i])
			}
		}
	default:
		if !equal(before, after) {
			list = append(list, Difference{path, changed})
		}
	}
	return list
}

// equal compares scalars; 1 and 1.0 are equal.
func equal(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	if n, ok := a.(int64); ok {
		if f, ok := b.(float64); ok {
			return float64(n) == f
		}
	}
	if f, ok := a.(float64); ok {
		if n, ok := b.(int64); ok {
			return f == float64(n)
		}
	}
	return a == b
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")
