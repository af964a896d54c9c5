// SPDX-License-Identifier: Apache-2.0

// Package managedfields tells what came with a request from what webhooks have added to its
// object since.
//
// The API server computes metadata.managedFields before it calls mutating webhooks, whatever
// the request says there (k8s.io/apiserver, fieldmanager.FieldManager.UpdateNoErrors and
// Apply). A field that was sent is in it. A field that a webhook adds is not, in any call for
// the request, because the API server does not compute it again. A request can claim fields
// in it that it did not send, but it cannot hide one that it did.
//
// The managed fields of a stored object tell no such thing: its owner can write them.
package managedfields

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// maxKeys bounds the annotations and labels of one object that are visited, over all its managers.
const maxKeys = 50_000

// Sent calls visitors with the keys of the annotations and labels that were sent, by the value of
// metadata.managedFields: some of them several times, and in no order that means anything.
// The key is only valid during the call. It returns false if the value does not tell: it is
// missing, it has no fields, or it claims too many. Any may have been sent then.
//
// The value must be valid JSON, see [rawjson.NewReader].
func Sent(value jsontext.Value, annotation, label func(key string)) (told bool) {
	keys := 0
	r := rawjson.NewReader(value)
	r.Array(func(int) {
		r.Object(func(name []byte) {
			if string(name) != "fieldsV1" || r.Kind() != '{' {
				return
			}
			told = true
			r.Object(func(name []byte) {
				if string(name) != "f:metadata" {
					return
				}
				r.Object(func(name []byte) {
					annotations := string(name) == "f:annotations"
					if !annotations && string(name) != "f:labels" {
						return
					}
					r.Object(func(field []byte) {
						key, isField := strings.CutPrefix(string(field), "f:")
						if !isField { // the map itself
							return
						}
						switch keys++; {
						case keys > maxKeys:
							r.Stop()
						case annotations:
							annotation(key)
						default:
							label(key)
						}
					})
				})
			})
		})
	})
	return told && keys <= maxKeys
}
