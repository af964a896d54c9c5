// SPDX-License-Identifier: Apache-2.0

package wire

import "errors"

// flowPrefix is how far a flow is looked for. In a review of an API server little stands
// before the namespace.
const flowPrefix = 16 << 10

var errEnough = errors.New("seen enough")

// AdmissionFlow names the flow that a review is one of, for a server that shares places
// between flows: the namespace of the request, empty without one. It reads no further than
// to the namespace or the object, and reports nothing that is wrong with the review.
func AdmissionFlow(body []byte) string {
	d := decoder{scanner{data: body[:min(len(body), flowPrefix)]}}
	namespace := ""
	_, _ = d.fields(0, "the review", func(field []byte, i int) (int, error) {
		if string(field) != "request" {
			return d.skip(i)
		}
		return d.fields(i, "request", func(field []byte, i int) (int, error) {
			switch string(field) {
			case "namespace":
				if i, err := d.string(i, "request.namespace", &namespace); err != nil {
					return i, err
				}
				return i, errEnough
			case "object", "oldObject":
				return i, errEnough
			default:
				return d.skip(i)
			}
		})
	})
	return namespace
}
