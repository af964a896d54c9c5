// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Response is a decision. See [Allowed], [Patched] and [DeniedResponse].
type Response struct {
	Allowed bool
	// Status explains a denial: the message that the user sees, the HTTP code
	// of the refused request, a reason and causes for programs. The API server
	// ignores it if Allowed is true and raises codes below 400 to 400.
	Status *metav1.Status
	// Patch changes the object of a mutating webhook's request. It must be empty
	// for a validating webhook, on denial, and where the request has no object
	// (DELETE).
	Patch jsonpatch.Patch
	// Warnings are shown to the user who made the request, whatever the
	// decision. The API server shows at most 4096 runes in total and recommends
	// 120 a line; one with a control character is dropped whole.
	Warnings []string
	// AuditAnnotations go into the audit event as "<webhook name>/<key>". A key
	// has at most 63 characters and no slash. Nothing secret belongs here.
	AuditAnnotations map[string]string
	// Origins tells why the patched object looks as it does. It never goes on
	// the wire.
	Origins []Origin
}

// Origin names the source of one change.
type Origin struct {
	// Path is a JSON Pointer into the object as patched. For a removal it is
	// where the value stood.
	Path string
	// Source is what wanted the change, for people: "PodDefault team-a/proxy".
	Source string
}

// Allowed admits the object as it is.
func Allowed() *Response { return &Response{Allowed: true} }

// Patched admits the object with the patch applied. An empty patch is the same
// as [Allowed].
func Patched(patch jsonpatch.Patch) *Response { return &Response{Allowed: true, Patch: patch} }

// DeniedResponse denies the request with 403 Forbidden and a message for the user. The message
// should name the object, the field and the remedy, and never a value.
func DeniedResponse(message string) *Response {
	return StatusResponse(metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message})
}

// BadRequest denies a request that the webhook cannot read: an object of another kind, a
// missing or undecodable one. It is a decision, so that no failurePolicy admits what the
// webhook could not inspect.
func BadRequest(format string, args ...any) *Response {
	return StatusResponse(metav1.Status{
		Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: fmt.Sprintf(format, args...),
	})
}

// StatusResponse denies the request with a full status, with code, reason and causes (such as
// Status() of an error of package apierrors).
func StatusResponse(status metav1.Status) *Response {
	status.Status = metav1.StatusFailure
	return &Response{Status: &status}
}

// Warn adds warnings and returns r.
func (r *Response) Warn(warnings ...string) *Response {
	r.Warnings = append(r.Warnings, warnings...)
	return r
}
