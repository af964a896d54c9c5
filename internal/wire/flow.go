// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/sallyport-io/sallyport/internal/json/rawjson"

// flowPrefix limits how far AdmissionFlow reads. In reviews from an API server, little
// precedes the namespace.
const flowPrefix = 16 << 10

// AdmissionFlow returns the flow of a review, for servers that share concurrency fairly
// between flows: the namespace of the request, or "" without one. It stops at the
// namespace or the object and does not report invalid reviews.
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
