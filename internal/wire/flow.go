// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/sallyport-io/sallyport/internal/rawjson"

// flowPrefix is how far a flow is looked for. In a review of an API server little stands
// before the namespace.
const flowPrefix = 16 << 10

// AdmissionFlow names the flow that a review is one of, for a server that shares places
// between flows: the namespace of the request, empty without one. It reads no further than
// to the namespace or the object, and reports nothing that is wrong with the review.
func AdmissionFlow(body []byte) string {
	namespace := ""
	_ = rawjson.Check(body[:min(len(body), flowPrefix)], maxDepth, func(r *rawjson.Reader) {
		d := decoder{r}
		d.fields("the review", func(field []byte) {
			if string(field) != "request" {
				return
			}
			d.fields("request", func(field []byte) {
				switch string(field) {
				case "namespace":
					d.string("request.namespace", &namespace)
					d.Stop()
				case "object", "oldObject":
					d.Stop()
				}
			})
		})
	})
	return namespace
}
