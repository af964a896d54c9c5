// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// encodeReview returns the AdmissionReview that answers the request with the given UID.
// It follows the API server's rules for v1, which also hold for v1beta1: a patch needs
// its type, and only a denial has a status. The answer is in space, which grows as needed.
func encodeReview(space *[]byte, version string, uid types.UID, resp *admission.Response) ([]byte, error) {
	var patch jsonpatch.Patch
	if resp.Allowed {
		patch = resp.Patch
	}
	whole, largest := patchSize(patch)
	size := reviewSize(resp, whole)
	if cap(*space) < size+largest {
		*space = make([]byte, 0, size+largest)
	}
	dst, text := (*space)[:0:size], (*space)[size:size:size+largest]
	dst = append(dst, `{"kind":"AdmissionReview","apiVersion":"`...)
	dst = append(dst, version...)
	dst = append(dst, `","response":{"uid":`...)
	dst = rawjson.AppendString(dst, string(uid))
	if resp.Allowed {
		dst = append(dst, `,"allowed":true`...)
	} else {
		dst = append(dst, `,"allowed":false`...)
		if resp.Status != nil {
			status, err := json.Marshal(resp.Status)
			if err != nil {
				return nil, fmt.Errorf("encoding the status of the answer: %w", err)
			}
			dst = append(append(dst, `,"status":`...), status...)
		}
	}
	if len(patch) > 0 {
		dst = append(dst, `,"patch":"`...)
		dst = appendPatch(dst, text, patch)
		dst = append(dst, `","patchType":"JSONPatch"`...)
	}
	if len(resp.AuditAnnotations) > 0 {
		dst = append(dst, `,"auditAnnotations":`...)
		separator := byte('{')
		for _, key := range slices.Sorted(maps.Keys(resp.AuditAnnotations)) {
			dst = rawjson.AppendString(append(dst, separator), key)
			dst = rawjson.AppendString(append(dst, ':'), resp.AuditAnnotations[key])
			separator = ','
		}
		dst = append(dst, '}')
	}
	if len(resp.Warnings) > 0 {
		dst = append(dst, `,"warnings":`...)
		separator := byte('[')
		for _, warning := range resp.Warnings {
			dst = rawjson.AppendString(append(dst, separator), printable(warning))
			separator = ','
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}"...), nil
}

// appendPatch appends the base64 of the patch's JSON, one operation after the other, each first in the space of text:
// all of the JSON would need as much memory as the answer.
func appendPatch(dst, text []byte, patch jsonpatch.Patch) []byte {
	for i := range patch {
		start := len(text)
		text = patch[i : i+1].AppendJSON(text)
		if i > 0 {
			text[start] = ',' // for the bracket
		}
		if i == len(patch)-1 {
			break
		}
		text = text[:len(text)-len("]")]
		encoded := len(text) / 3 * 3 // more would need padding
		dst = appendBase64(dst, text[:encoded])
		text = text[:copy(text, text[encoded:])]
	}
	return appendBase64(dst, text)
}

// patchSize estimates the encoded size in bytes of the patch, and of its largest operation. A growing buffer briefly
// takes twice its size, and patches may have megabytes.
func patchSize(patch jsonpatch.Patch) (whole, largest int) {
	for i := range patch {
		op := &patch[i]
		size := len(`[{"op":"replace","path":"","from":"","value":}]`) + len(op.Path) + len(op.From) + len(op.Value)
		whole, largest = whole+size, max(largest, size+2) // with what is left of the one before
	}
	return whole, largest
}

// reviewSize estimates the size of the answer in bytes, given the size of its patch.
func reviewSize(resp *admission.Response, patch int) int {
	size := 512 + base64.StdEncoding.EncodedLen(patch)
	if resp.Status != nil {
		size += len(resp.Status.Message)
	}
	for key, value := range resp.AuditAnnotations {
		size += len(`"":"",`) + len(key) + len(value)
	}
	for _, warning := range resp.Warnings {
		size += len(`"",`) + len(warning)
	}
	return size
}

// printable replaces control characters, because the API server drops warnings that
// contain one.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
