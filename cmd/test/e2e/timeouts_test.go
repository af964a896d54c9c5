// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// testTimeouts looks at ?timeout= as it arrives and at the deadline that a handler has.
func testTimeouts(t *testing.T, w *world) {
	type timed struct {
		kind    admission.Type
		seconds int32
		policy  admissionregistrationv1.FailurePolicyType
		hangs   bool // until its time is up, which is before the API server's
		late    bool // until nobody waits any more
		// What arrives: at least and at most so many seconds; at most 0 means that it is not
		// called.
		least, most int
	}
	const mutating, validating = admission.TypeMutating, admission.TypeValidating
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	for i, tc := range []struct {
		name     string
		request  time.Duration // what the client allows
		webhooks []timed
		refused  string // what the message matches; empty if the request is admitted
	}{
		{
			name: "the shorter of the two arrives", request: 25 * time.Second,
			webhooks: []timed{
				{kind: mutating, seconds: 30, policy: fail, least: 6, most: 25}, {kind: mutating, seconds: 5, policy: fail, least: 5, most: 5},
				{kind: validating, seconds: 30, policy: fail, least: 6, most: 25}, {kind: validating, seconds: 5, policy: fail, least: 5, most: 5},
			},
		},
		{
			name: "what one has used is gone for those after it", request: 20 * time.Second,
			webhooks: []timed{
				{kind: mutating, seconds: 2, policy: ignore, hangs: true, least: 2, most: 2},
				{kind: mutating, seconds: 30, policy: fail, least: 1, most: 19},
				{kind: validating, seconds: 30, policy: fail, least: 1, most: 19},
			},
		},
		{
			name: "a webhook that is late fails the request", request: 20 * time.Second,
			webhooks: []timed{{kind: validating, seconds: 1, policy: fail, hangs: true, least: 1, most: 1}},
			refused:  `failed calling webhook "0\.timeouts-2\.sallyport\.io"`,
		},
		{
			name: "a request that is late fails, whatever the failure policy, and nobody else is called", request: 3 * time.Second,
			webhooks: []timed{
				{kind: mutating, seconds: 30, policy: ignore, late: true, least: 1, most: 3},
				{kind: mutating, seconds: 30, policy: ignore},
			},
			refused: "deadline|time allotted|Timeout", // the client's or the API server's
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("timeouts-%d", i)
			arrived, deadlines, ended := &journal[string]{}, &journal[time.Duration]{}, &journal[error]{}
			over := make(chan struct{})
			var webhooks []admission.Webhook
			paths := make([]string, len(tc.webhooks))
			for n, given := range tc.webhooks {
				paths[n] = fmt.Sprintf("/%d", n)
				webhooks = append(webhooks, admission.Webhook{
					Name: fmt.Sprintf("%d.%s.sallyport.io", n, name), Path: paths[n], Type: given.kind,
					Rules:             admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), admissionregistrationv1.Create),
					NamespaceSelector: within(name), TimeoutSeconds: given.seconds, FailurePolicy: given.policy,
					AllowWedge: "only a namespace of the test",
					Handler: admission.HandlerFunc(func(ctx context.Context, _ *admissionv1.AdmissionRequest) (*admission.Response, error) {
						if deadline, ok := ctx.Deadline(); ok {
							deadlines.note(paths[n], time.Until(deadline))
						}
						if given.hangs || given.late {
							<-ctx.Done()
							ended.note(paths[n], ctx.Err())
						}
						if given.late {
							<-over
						}
						if err := ctx.Err(); err != nil {
							return nil, err
						}
						return admission.Allowed(), nil
					}),
				})
			}
			w.namespace(t, name)
			w.serve(t, name, webhooks, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					arrived.note(r.URL.Path, r.URL.Query().Get("timeout"))
					next.ServeHTTP(rw, r)
				})
			})
			err := w.clients.CoreV1().RESTClient().Post().Namespace(name).Resource("configmaps").Timeout(tc.request).
				Body(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}).Do(t.Context()).Error()
			close(over)
			if (err != nil) != (tc.refused != "") || err != nil && !regexp.MustCompile(tc.refused).MatchString(err.Error()) {
				t.Errorf("the request ended with %v, want %q", err, tc.refused)
			}
			got, remaining := arrived.take(), deadlines.take()
			for n, given := range tc.webhooks {
				calls := got[paths[n]]
				if given.most == 0 {
					if len(calls) > 0 {
						t.Errorf("webhook %d was called", n)
					}
					continue
				}
				if len(calls) != 1 {
					t.Errorf("webhook %d was called %d times", n, len(calls))
					continue
				}
				timeout, err := time.ParseDuration(calls[0])
				if err != nil || timeout < time.Duration(given.least)*time.Second || timeout > time.Duration(given.most)*time.Second {
					t.Errorf("webhook %d was called with ?timeout=%s, want %d to %d s", n, calls[0], given.least, given.most)
				}
				if given.hangs || given.late {
					eventually(t, "the context of the handler to end", func(context.Context) (bool, error) { return ended.peek(paths[n]) == 1, nil })
				}
				if have := remaining[paths[n]]; len(have) != 1 || have[0] > timeout || have[0] <= 0 {
					t.Errorf("the handler of webhook %d has %v of %s", n, have, timeout)
				}
			}
		})
	}
}
