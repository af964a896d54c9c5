// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"crypto/rand"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// pruned is an object without the values that a patch does not reach. The library reads and writes each
// value once for each level above it, so that a large object takes far longer than its patch.
type pruned struct {
	object []byte
	values []jsontext.Value // that placeholders stand for, by number
}

const (
	prunedSize = 2 << 10 // of objects that are worth it
	valueSize  = 32      // of values that are
)

// placeholder begins the strings that stand for values. Nobody who writes objects knows it.
var placeholder = `"` + rand.Text() + `:`

// A reach is what operations reach below a value, by the tokens of their paths.
type reach map[string]reach

// prune replaces values by placeholders. It returns nil if the patch may move or compare values, or if
// the object does not parse: the whole object is then needed.
func prune(object, patch []byte) *pruned {
	if len(object) < prunedSize {
		return nil
	}
	var operations []struct {
		Op   string           `json:"op"`
		Path jsontext.Pointer `json:"path"`
	}
	if json.Unmarshal(patch, &operations) != nil {
		return nil
	}
	root := reach{}
	for _, operation := range operations {
		if operation.Op != "add" && operation.Op != "replace" && operation.Op != "remove" || !operation.Path.IsValid() {
			return nil
		}
		at := root
		for token := range operation.Path.Tokens() {
			if at[token] == nil {
				at[token] = reach{}
			}
			at = at[token]
		}
	}
	p := &pruned{}
	var err error
	if p.object, err = p.value(nil, object, root); err != nil {
		return nil
	}
	return p
}

// value appends a value without what is not reached.
func (p *pruned) value(dst []byte, value jsontext.Value, reached reach) ([]byte, error) {
	value = bytes.TrimSpace(value)
	switch kind := value.Kind(); {
	case len(reached) == 0 || kind != '{' && kind != '[':
		return p.replace(dst, value), nil
	case kind == '{':
		return p.members(dst, value, reached)
	}
	return p.elements(dst, value, reached)
}

// replace appends a placeholder for a value, or the value if it is short.
func (p *pruned) replace(dst []byte, value jsontext.Value) []byte {
	if len(value) < valueSize {
		return append(dst, value...)
	}
	p.values = append(p.values, value)
	dst = append(dst, placeholder...)
	return append(strconv.AppendInt(dst, int64(len(p.values)-1), 10), '"')
}

func (p *pruned) members(dst []byte, object jsontext.Value, reached reach) ([]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(object)) // which it does not copy
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for first := true; decoder.PeekKind() != '}'; first = false {
		name, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = append(append(dst, name...), ':')
		token, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return nil, err
		}
		member, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(decoder.InputOffset()) // what the decoder returns is valid only until it reads on
		if dst, err = p.value(dst, object[end-len(member):end], reached[string(token)]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (p *pruned) elements(dst []byte, list jsontext.Value, reached reach) ([]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(list))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	last, stay := reached.last()
	anyOf := reach(nil)
	if !stay {
		anyOf = reached.all()
	}
	begin, end := 0, 0 // of the elements behind the last one that is reached
	for i := 0; decoder.PeekKind() != ']'; i++ {
		element, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		end = int(decoder.InputOffset())
		if stay && i > last {
			if begin == 0 {
				begin = end - len(element)
			}
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		below := anyOf
		if stay {
			below = reached[strconv.Itoa(i)]
		}
		if dst, err = p.value(dst, list[end-len(element):end], below); err != nil {
			return nil, err
		}
	}
	if begin > 0 {
		if last >= 0 {
			dst = append(dst, ',')
		}
		p.values = append(p.values, list[begin:end])
		dst = append(dst, placeholder...)
		dst = append(strconv.AppendInt(dst, int64(len(p.values)-1), 10), '"')
	}
	return append(dst, ']'), nil
}

// last returns the last index of a list that is reached, -1 for none, and whether all elements stay
// where they are: operations lead through them, or append behind them.
func (r reach) last() (last int, stay bool) {
	last = -1
	for token, below := range r {
		if token == "-" {
			if len(below) > 0 {
				return 0, false
			}
			continue
		}
		i, err := strconv.Atoi(token)
		if err != nil || strconv.Itoa(i) != token || i < 0 || len(below) == 0 {
			return 0, false
		}
		last = max(last, i)
	}
	return last, true
}

// all merges what is reached below any token.
func (r reach) all() reach {
	out := reach{}
	for _, below := range r {
		out.merge(below)
	}
	return out
}

func (r reach) merge(other reach) {
	for token, below := range other {
		if r[token] == nil {
			r[token] = reach{}
		}
		r[token].merge(below)
	}
}

// restore replaces placeholders by the values.
func (p *pruned) restore(object []byte) []byte {
	out := make([]byte, 0, len(object)*2)
	for {
		before, rest, found := bytes.Cut(object, []byte(placeholder))
		out = append(out, before...)
		if !found {
			return out
		}
		number, after, _ := bytes.Cut(rest, []byte(`"`))
		if i, err := strconv.Atoi(string(number)); err == nil && i < len(p.values) {
			out = append(out, p.values[i]...)
		}
		object = after
	}
}
