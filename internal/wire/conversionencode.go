// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// maxMessage limits a failure message, in bytes. The API server logs the message
// and shows it to its user.
const maxMessage = 4 << 10

// appendConversion begins the answer to a review, up to the first converted object.
func appendConversion(dst []byte, review *conversionReview) []byte {
	dst = append(dst, `{"kind":"ConversionReview","apiVersion":"`...)
	dst = append(dst, review.version...)
	dst = append(dst, `","response":{"uid":`...)
	dst = rawjson.AppendString(dst, review.uid)
	return append(dst, `,"convertedObjects":[`...)
}

// appendSuccess ends the answer after the last object.
func appendSuccess(dst []byte) []byte {
	return append(dst, `],"result":{"status":"Success"}}}`...)
}

// appendFailure appends the complete answer to a failed review.
func appendFailure(dst []byte, review *conversionReview, message string) []byte {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	dst = appendConversion(dst, review)
	dst = append(dst, `],"result":{"status":"Failure","message":`...)
	dst = rawjson.AppendString(dst, message)
	return append(dst, "}}}"...)
}
