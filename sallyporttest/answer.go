// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
)

// maxWarningRunes is the API server's limit on the total length of a webhook's warnings.
const maxWarningRunes = 4096

// verifyAnswer returns the patch of an answer, nil if there is none, and all violations of the
// API server's rules (k8s.io/apiserver/pkg/admission/plugin/webhook).
func verifyAnswer(webhook admission.Webhook, question *admissionv1.AdmissionReview, body []byte) (patch []byte, problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &answer); err != nil {
		problem("the answer is not a review: %v", err)
		return nil, problems
	}
	if answer.APIVersion != question.APIVersion || answer.Kind != question.Kind {
		problem("the answer is a %s of %s, the question a %s of %s", answer.Kind, answer.APIVersion, question.Kind, question.APIVersion)
	}
	r := answer.Response
	if r == nil {
		problem("the answer has no response")
		return nil, problems
	}
	if r.UID != question.Request.UID {
		problem("the answer has the UID %q, the question %q", r.UID, question.Request.UID)
	}
	switch {
	case len(r.Patch) == 0 && r.PatchType != nil:
		problem("the answer has the type of a patch, and no patch")
	case len(r.Patch) == 0:
	case r.PatchType == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch:
		problem("the patch has no type; it must be JSONPatch")
	case webhook.Type == admission.TypeValidating:
		problem("a validating webhook must not send a patch")
	case !r.Allowed:
		problem("a denial must not have a patch")
	case len(question.Request.Object.Raw) == 0:
		problem("there is a patch, and no object to apply it to (%s)", question.Request.Operation)
	default:
		patch = r.Patch
	}
	for key := range r.AuditAnnotations {
		for _, reason := range validation.IsQualifiedName(webhook.Name + "/" + key) {
			problem("the API server drops the audit annotation %q: %s", key, reason)
		}
	}
	runes := 0
	for _, warning := range r.Warnings {
		runes += utf8.RuneCountInString(warning)
	}
	if runes > maxWarningRunes {
		problem("the warnings have %d characters; the API server shows %d", runes, maxWarningRunes)
	}
	return patch, problems
}
