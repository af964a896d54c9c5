// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Tree decodes JSON into the form of Kubernetes' unstructured objects: integers that
// fit are int64, other numbers float64. Errors repeat none of the content.
func Tree(raw []byte) (any, error) {
	d := treeDecoder{Reader: rawjson.NewReader(raw)}
	value := d.value()
	return value, d.err
}

type treeDecoder struct {
	rawjson.Reader
	err error
}

func (d *treeDecoder) value() any {
	switch d.Kind() {
	case '{':
		object := map[string]any{}
		d.Object(func(name []byte) {
			key := string(name)
			object[key] = d.value()
		})
		return object
	case '[':
		list := []any{}
		d.Array(func(int) { list = append(list, d.value()) })
		return list
	case '"':
		text, _ := d.String()
		return string(text)
	case 't':
		d.Skip()
		return true
	case 'f':
		d.Skip()
		return false
	case '0':
		return d.number()
	default:
		d.Skip()
		return nil
	}
}

func (d *treeDecoder) number() any {
	at := d.Offset()
	text := string(d.Value())
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("at byte %d: the number is out of range", at)
	}
	return f
}
