// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strconv"
)

// conversionFloorName is the floor of a LIST, where the API server takes no canned
// answer: it wants the objects back, in the version that it has asked for.
const conversionFloorName = "conversion-floor"

// serveConversionFloor is the floor's server, with the cheapest answer that the API
// server takes. It goes by where things stand in a review that the API server writes.
func serveConversionFloor(args []string) error {
	return serveCheaply(conversionFloorName, args, func(space, body []byte) ([]byte, []string) {
		answer, ok := appendCheapConversion(space, body)
		if !ok {
			return nil, []string{"0"}
		}
		return answer, []string{strconv.Itoa(len(answer))}
	})
}

// appendCheapConversion cuts the one object out of a review, gives it the wanted
// apiVersion, which stands first in it, and wraps it up again; no more is looked at.
func appendCheapConversion(dst, review []byte) ([]byte, bool) {
	_, rest, okUID := bytes.Cut(review, []byte(`"uid":"`))
	uid, rest, okUIDEnd := bytes.Cut(rest, []byte(`"`))
	_, rest, okDesired := bytes.Cut(rest, []byte(`"desiredAPIVersion":"`))
	desired, rest, okDesiredEnd := bytes.Cut(rest, []byte(`"`))
	_, rest, okObject := bytes.Cut(rest, []byte(`"objects":[{"apiVersion":"`))
	_, rest, okVersionEnd := bytes.Cut(rest, []byte(`"`))
	end := bytes.LastIndex(rest, []byte(`]},"response"`))
	if !okUID || !okUIDEnd || !okDesired || !okDesiredEnd || !okObject || !okVersionEnd || end < 0 {
		return dst, false
	}
	dst = append(dst, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"`...)
	dst = append(dst, uid...)
	dst = append(dst, `","convertedObjects":[{"apiVersion":"`...)
	dst = append(dst, desired...)
	dst = append(dst, '"')
	dst = append(dst, rest[:end]...)
	return append(dst, `],"result":{"status":"Success"}}}`...), true
}
