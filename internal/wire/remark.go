// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
)

// remark logs what is wrong with an answer that is sent nevertheless: it came after the
// deadline of the call, or has audit annotations that the API server drops. The limit is
// that of faults.
func (a *Admission) remark(ctx context.Context, req *admissionv1.AdmissionRequest, resp *admission.Response) {
	if late(ctx) {
		a.faults.remarks.Do(func() {
			deadline, _ := ctx.Deadline()
			a.logger.WarnContext(ctx, "the handler outlived the deadline of its call: the API server may have given up; stop when the context ends",
				"requestID", string(req.UID), "late", time.Since(deadline).String())
		})
	}
	for key := range resp.AuditAnnotations {
		if !plainAuditKey(key) {
			a.remarkAudit(ctx, req, resp.AuditAnnotations)
			return
		}
	}
}

// late reports whether the deadline of a call has passed, whether or not its context has
// noticed.
func late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// plainAuditKey reports whether a key is valid without a look at the rules.
func plainAuditKey(key string) bool {
	for i := range len(key) {
		if c := key[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return key != "" && len(key) <= maxAuditKey
}

// maxAuditKey is the limit of a key, in bytes.
const maxAuditKey = 63

func (a *Admission) remarkAudit(ctx context.Context, req *admissionv1.AdmissionRequest, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		// The API server's rule, see k8s.io/apiserver/pkg/admission/audit.go.
		if problems := validation.IsQualifiedName(a.webhook.Name + "/" + key); len(problems) > 0 {
			a.faults.remarks.Do(func() {
				a.logger.ErrorContext(ctx, "the API server drops an audit annotation: correct its key",
					"requestID", string(req.UID), "key", key[:min(len(key), 2*maxAuditKey)], "error", strings.Join(problems, "; "))
			})
		}
	}
}
