// SPDX-License-Identifier: Apache-2.0

// Package wire speaks the AdmissionReview and ConversionReview protocols of
// kube-apiserver: it decodes the envelope, calls the handler and encodes the answer. The
// versions are those of package reviewversion.
//
// A decision is a review with HTTP 200. A fault, of the webhook or of its caller, is an
// HTTP error, so that the failure policy of the webhook configuration decides. An
// answer always carries the UID, version and kind of its request.
package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Admission answers admission reviews with one webhook's handler. It is an
// http.Handler. The server around it limits size, time and concurrency.
type Admission struct {
	webhook admission.Webhook
	logger  *slog.Logger
	faults  *faultLog
	metrics *webhookMetrics
}

// AdmissionOptions configure an [Admission].
type AdmissionOptions struct {
	// Logger receives faults and what handlers log. Decisions are not logged. Default:
	// slog.Default().
	Logger *slog.Logger
	// Metrics counts outcomes. Default: none.
	Metrics *Metrics
}

// NewAdmission serves the webhook's handler. The definition must be valid, see
// [admission.Webhook.Validate].
func NewAdmission(webhook admission.Webhook, options AdmissionOptions) (*Admission, error) {
	if err := webhook.Problems(); err != nil {
		return nil, err
	}
	logger := options.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger = logger.With("webhook", webhook.Name)
	return &Admission{
		webhook: webhook,
		logger:  logger,
		faults:  newFaultLog(logger),
		metrics: options.Metrics.forWebhook(webhook.Name),
	}, nil
}

// Review answers the AdmissionReview in body. It retains body and does not change it.
// It returns the request, the decision and the encoded answer. Errors are always a
// [*Fault].
func (a *Admission) Review(ctx context.Context, body []byte) (*Reviewed, error) {
	return a.review(ctx, body, new([]byte))
}

// review is [Admission.Review] with an answer in space, which grows as needed.
func (a *Admission) review(ctx context.Context, body []byte, space *[]byte) (*Reviewed, error) {
	version, req, err := decodeReview(body)
	if err != nil {
		return nil, &Fault{Code: http.StatusBadRequest, Err: err}
	}
	ctx = admission.WithLogger(ctx, a.logger)
	resp, err := a.handle(ctx, req)
	if err != nil {
		if resp = denied(req, err); resp == nil {
			return nil, faultOf(ctx, err)
		}
	}
	if err := a.check(req, resp); err != nil {
		return nil, &Fault{Code: http.StatusInternalServerError, Err: err}
	}
	answer, err := encodeReview(space, version, req.UID, resp)
	if err != nil {
		return nil, &Fault{Code: http.StatusInternalServerError, Err: err}
	}
	a.remark(ctx, req, resp)
	return &Reviewed{Request: req, Response: resp, Answer: answer}, nil
}

// denied is the response of an error that [admission.Deny] has marked. One of several that are joined is not: another may be a fault.
func denied(req *admissionv1.AdmissionRequest, err error) *admission.Response {
	for ; err != nil; err = errors.Unwrap(err) {
		if denial, ok := err.(interface {
			Response(req *admissionv1.AdmissionRequest) *admission.Response
		}); ok {
			return denial.Response(req)
		}
	}
	return nil
}

// Reviewed is a decided request.
type Reviewed struct {
	Request  *admissionv1.AdmissionRequest
	Response *admission.Response
	Answer   []byte // the AdmissionReview as sent
}

// check refuses answers that the API server would refuse, or would turn into an error
// that no failure policy covers.
func (a *Admission) check(req *admissionv1.AdmissionRequest, resp *admission.Response) error {
	switch {
	case resp == nil:
		return errors.New("the handler returned neither a response nor an error")
	case !resp.Allowed || len(resp.Patch) == 0:
		return nil
	case a.webhook.Type == admission.TypeValidating:
		return errors.New("the handler of a validating webhook returned a patch")
	case len(req.Object.Raw) == 0:
		return fmt.Errorf("the handler returned a patch for a request without an object, operation %s", brief(string(req.Operation)))
	}
	if err := resp.Patch.Validate(); err != nil {
		return fmt.Errorf("the handler returned an invalid patch: %w", err)
	}
	return checkIdentity(req, resp.Patch)
}

func (a *Admission) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, fault := readBody(r)
	a.answer(r.Context(), w, body, fault)
}

// Answer answers a POST whose body the caller has already read. It retains body and
// does not change it.
func (a *Admission) Answer(ctx context.Context, w http.ResponseWriter, header http.Header, body []byte) {
	a.answer(ctx, w, body, checkRead(header, body))
}

func (a *Admission) answer(ctx context.Context, w http.ResponseWriter, body []byte, fault *Fault) {
	if fault == nil {
		space := spaces.Get().(*[]byte)
		reviewed, err := a.review(ctx, body, space)
		if err == nil {
			a.metrics.decided(reviewed.Response)
			a.describe(ctx, reviewed)
			header := w.Header()
			header["Content-Type"] = jsonContentType
			header["Content-Length"] = []string{strconv.Itoa(len(reviewed.Answer))}
			// An error means that the client is gone; HTTP/2 may still read the answer then.
			if _, err := w.Write(reviewed.Answer); err == nil && cap(*space) <= maxSpace {
				spaces.Put(space)
			}
			return
		}
		if !errors.As(err, &fault) {
			fault = &Fault{Code: http.StatusInternalServerError, Err: err}
		}
	}
	a.metrics.failed(fault.Code)
	a.faults.log(ctx, fault)
	fault.write(w, a.webhook.Name)
}

// spaces pools the memory of answers: a third of what a review with a long patch allocates.
var spaces = sync.Pool{New: func() any { return new([]byte) }}

// maxSpace bounds what goes back to the pool, in bytes.
const maxSpace = 64 << 10

var jsonContentType = []string{"application/json"}
