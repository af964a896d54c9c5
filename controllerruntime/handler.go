// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire/httprequest"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Handler adapts a handler of controller-runtime to an application. It also accepts a
// *Webhook, as Webhook.WithDefaulter and others create them, and calls only its handler,
// without RecoverPanic and LogConstructor: a panic is a fault, as always. Its WithContextFunc
// gets the HTTP request, whose body has been read; without one, as in a test of the handler
// alone, the call is a fault.
//
// The response decides the request, with these differences:
//
//   - A denial with a code of 500 or above (Errored with an internal error) is a fault: the
//     failurePolicy applies. With Details.RetryAfterSeconds the API server is told to
//     retry.
//   - The API server gets a patch with the same result in a deterministic order, because
//     controller-runtime computes patches in random order. A patch that does not apply to
//     the object is a fault. Patches of a denial are ignored.
//   - Numbers keep their text in the patch, whatever their size. A patch that
//     PatchResponseFromRaw computes has the text of the documents.
func Handler(handler ctrladmission.Handler) admission.Handler {
	a := &adapted{handler: handler}
	for {
		webhook, ok := a.handler.(*ctrladmission.Webhook)
		if !ok {
			break
		}
		if webhook == nil {
			a.handler = nil
			break
		}
		if webhook.WithContextFunc != nil {
			a.contexts = append(a.contexts, webhook.WithContextFunc)
		}
		a.handler = webhook.Handler
	}
	if value := reflect.ValueOf(a.handler); !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		a.problem = errors.New("is missing")
	}
	return a
}

type adapted struct {
	handler  ctrladmission.Handler
	contexts []func(context.Context, *http.Request) context.Context
	problem  error
}

// Problems reports a handler that is missing, see [admission.Handler].
func (a *adapted) Problems() error { return a.problem }

// Handle implements [admission.Handler].
func (a *adapted) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if a.problem != nil {
		return nil, fmt.Errorf("the handler %w", a.problem)
	}
	if len(a.contexts) > 0 {
		from := httprequest.From(ctx)
		if from == nil {
			return nil, errors.New("the handler is a Webhook with WithContextFunc, and this call is not part of an HTTP request: serve it, or call its Handler")
		}
		for _, add := range a.contexts {
			ctx = add(ctx, from)
		}
	}
	request := ctrladmission.Request{AdmissionRequest: *req}
	response := a.handler.Handle(logged(ctx, &request), request)
	if err := ctx.Err(); err != nil {
		return nil, err // the caller is gone, and its error is not the user's
	}
	answer, err := decision(&response)
	if err != nil || !answer.Allowed {
		return answer, err
	}
	answer.Patch, err = changes(req.Object.Raw, &response)
	return answer, err
}

// decision converts a response, except for its patch.
func decision(response *ctrladmission.Response) (*admission.Response, error) {
	answer := admission.Allowed()
	if !response.Allowed {
		answer = admission.DeniedResponse("")
		if result := response.Result; result != nil {
			if result.Code >= http.StatusInternalServerError {
				return nil, faultOf(response)
			}
			status := *result
			if status.Code == 0 {
				status.Code = http.StatusForbidden
			}
			answer = admission.StatusResponse(status)
		}
	}
	answer.Warnings, answer.AuditAnnotations = response.Warnings, response.AuditAnnotations
	return answer, nil
}

func faultOf(response *ctrladmission.Response) error {
	result := response.Result
	message := result.Message
	if message == "" {
		message = string(result.Reason)
	}
	err := fmt.Errorf("the handler answers %d: %s", result.Code, message)
	if result.Details != nil && result.Details.RetryAfterSeconds > 0 {
		return admission.Unavailable(err, time.Duration(result.Details.RetryAfterSeconds)*time.Second)
	}
	return err
}

// changes returns the patch for the changes that a response makes to an object.
func changes(object []byte, response *ctrladmission.Response) (jsonpatch.Patch, error) {
	encoded := response.Patch
	if len(response.Patches) > 0 { // they override Patch, see ctrladmission.Response
		var err error
		if encoded, err = json.Marshal(response.Patches); err != nil {
			return nil, fmt.Errorf("encode the patches of the handler: %w", err)
		}
	}
	if len(encoded) == 0 {
		return nil, nil
	}
	return canonical(object, encoded)
}
