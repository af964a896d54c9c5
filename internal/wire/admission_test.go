// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// definition wraps a handler in a webhook.
func definition(kind admission.Type, handler admission.HandlerFunc) admission.Webhook {
	return admission.Webhook{
		Name: "check.crontab.example.com", Path: "/check", Type: kind,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
		Handler: handler,
	}
}

// always gives every request the same answer.
func always(resp *admission.Response, err error) admission.HandlerFunc {
	return func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) { return resp, err }
}

// served is an Admission with its log and its metrics.
type served struct {
	*Admission
	log     *bytes.Buffer
	metrics *Metrics
}

func serve(tb testing.TB, kind admission.Type, handler admission.HandlerFunc) *served {
	tb.Helper()
	s := &served{log: &bytes.Buffer{}}
	var err error
	if s.metrics, err = NewMetrics(prometheus.NewRegistry()); err != nil {
		tb.Fatal(err)
	}
	s.Admission, err = NewAdmission(definition(kind, handler), AdmissionOptions{
		Logger: slog.New(slog.NewTextHandler(s.log, nil)), Metrics: s.metrics,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// post makes the request that the API server makes.
func post(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/check?timeout=10s", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	return r
}

func (s *served) answer(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

var somePatch = jsonpatch.Patch{{Op: jsonpatch.Add, Path: "/metadata/labels", Value: []byte(`{}`)}}

func TestDecisionsAreReviews(t *testing.T) {
	const created = `{"uid":"` + testUID + `","operation":"CREATE","object":{}}`
	const deleted = `{"uid":"` + testUID + `","operation":"DELETE","object":null,"oldObject":{}}`
	teapot := metav1.Status{Code: http.StatusTeapot, Reason: "Short", Message: "and stout"}
	for name, tc := range map[string]struct {
		kind    admission.Type
		request string
		resp    *admission.Response
		code    int32 // of the denial, 0 if allowed
		patched bool
	}{
		"a mutating webhook allows":                          {admission.TypeMutating, created, admission.Allowed(), 0, false},
		"a mutating webhook patches":                         {admission.TypeMutating, created, admission.Patched(somePatch), 0, true},
		"a mutating webhook returns an empty patch":          {admission.TypeMutating, created, admission.Patched(jsonpatch.Patch{}), 0, false},
		"a mutating webhook denies":                          {admission.TypeMutating, created, admission.DeniedResponse("no"), 403, false},
		"a mutating webhook denies and patches":              {admission.TypeMutating, created, &admission.Response{Patch: somePatch, Status: &teapot}, 418, false},
		"a mutating webhook allows a deletion":               {admission.TypeMutating, deleted, admission.Allowed(), 0, false},
		"a mutating webhook denies a deletion and patches":   {admission.TypeMutating, deleted, &admission.Response{Patch: somePatch, Status: &teapot}, 418, false},
		"a validating webhook allows":                        {admission.TypeValidating, created, admission.Allowed(), 0, false},
		"a validating webhook allows with an empty patch":    {admission.TypeValidating, created, admission.Patched(jsonpatch.Patch{}), 0, false},
		"a validating webhook denies":                        {admission.TypeValidating, created, admission.DeniedResponse(fmt.Sprintf("%d", 1)), 403, false},
		"a validating webhook denies with a code of its own": {admission.TypeValidating, created, admission.StatusResponse(teapot), 418, false},
		"a validating webhook denies an unreadable object":   {admission.TypeValidating, created, admission.BadRequest("no pod"), 400, false},
	} {
		for _, version := range []string{admissionV1, admissionV1beta1} {
			t.Run(name+", "+version, func(t *testing.T) {
				s := serve(t, tc.kind, always(tc.resp, nil))
				resp := s.answer(post(strings.ReplaceAll(review(tc.request), admissionV1, version)))
				body := bodyOf(t, resp)
				if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" ||
					resp.Header.Get("Content-Length") != fmt.Sprint(len(body)) || resp.Close {
					t.Fatalf("got %s, header %v\n%s", resp.Status, resp.Header, body)
				}
				got := decodeAnswer(t, version, []byte(body))
				if got.UID != testUID || got.Allowed != (tc.code == 0) || (got.Patch != nil) != tc.patched {
					t.Errorf("got %s", body)
				}
				if tc.code != 0 && (got.Result == nil || got.Result.Code != tc.code) {
					t.Errorf("got status %+v, want code %d", got.Result, tc.code)
				}
				if s.log.Len() > 0 {
					t.Errorf("a decision was logged: %s", s.log)
				}
			})
		}
	}
}

func TestAnErrorDeniesIfItIsMarked(t *testing.T) {
	no := admission.Denyf("no")
	for name, tc := range map[string]struct {
		err  error
		code int // of the HTTP answer
	}{
		"marked":                       {no, 200},
		"wrapped":                      {fmt.Errorf("ask: %w", no), 200},
		"not marked":                   {errors.New("no"), 500},
		"marked, and then a fault":     {admission.Fault(no), 500},
		"a fault, and then marked":     {admission.Deny(admission.Fault(errors.New("no"))), 500},
		"marked, and then unavailable": {admission.Unavailable(no, time.Second), 503},
		"joined with another":          {errors.Join(no, errors.New("broken")), 500},
		"the end of a context":         {admission.Deny(context.DeadlineExceeded), 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, admission.TypeValidating, always(nil, tc.err))
			resp := s.answer(post(review(`{"uid":"` + testUID + `","operation":"CREATE","object":{}}`)))
			body := bodyOf(t, resp)
			if resp.StatusCode != tc.code {
				t.Fatalf("got %s\n%s", resp.Status, body)
			}
			if tc.code == http.StatusOK {
				if got := decodeAnswer(t, admissionV1, []byte(body)); got.Allowed || got.Result.Code != 403 || got.Result.Message != "no" {
					t.Errorf("got %s", body)
				}
			}
		})
	}
}

func TestFaultsAreHTTPErrors(t *testing.T) {
	const created = `{"uid":"` + testUID + `","operation":"CREATE","object":{}}`
	const deleted = `{"uid":"` + testUID + `","operation":"DELETE","object":null,"oldObject":{}}`
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("the cache is broken")
	ended := func(ctx context.Context, _ *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return nil, fmt.Errorf("reading PodDefaults: %w", ctx.Err())
	}
	for name, tc := range map[string]struct {
		kind       admission.Type
		request    string
		ctx        context.Context
		handler    admission.HandlerFunc
		code       int
		retryAfter string
		text       string
	}{
		"neither a response nor an error": {
			handler: always(nil, nil), code: 500, text: "the handler returned neither a response nor an error",
		},
		"neither, and the deadline has passed": {
			ctx: late, handler: always(nil, nil), code: 500, text: "the handler returned neither a response nor an error",
		},
		"an error": {handler: always(nil, broken), code: 500, text: "the cache is broken"},
		"an error beside a response": {
			handler: always(admission.Allowed(), broken), code: 500, text: "the cache is broken",
		},
		"a deadline of the handler's own": {
			handler: always(nil, context.DeadlineExceeded), code: 500, text: "context deadline exceeded",
		},
		"the deadline of the call": {
			ctx: late, handler: ended, code: 504,
			text: "no decision before the deadline of the call: reading PodDefaults: context deadline exceeded",
		},
		"a caller who went away": {
			ctx: gone, handler: ended, code: 499, text: "the caller went away: reading PodDefaults: context canceled",
		},
		"unavailable for now": {
			handler: always(nil, admission.Unavailable(broken, 0)), code: 503, retryAfter: "0", text: "unavailable: the cache is broken",
		},
		"unavailable for a nanosecond": {
			handler: always(nil, admission.Unavailable(broken, 1)), code: 503, retryAfter: "1", text: "unavailable: the cache is broken",
		},
		"unavailable for a second": {
			handler: always(nil, admission.Unavailable(broken, time.Second)), code: 503, retryAfter: "1", text: "unavailable: the cache is broken",
		},
		"unavailable for a little more than a second": {
			handler: always(nil, admission.Unavailable(broken, time.Second+1)), code: 503, retryAfter: "2", text: "unavailable: the cache is broken",
		},
		"unavailable for ever": {
			handler: always(nil, admission.Unavailable(broken, 1<<63-1)), code: 503, retryAfter: "9223372037", text: "unavailable: the cache is broken",
		},
		"unavailable, wrapped": {
			handler: always(nil, fmt.Errorf("pods: %w", admission.Unavailable(broken, 0))), code: 503, retryAfter: "0",
			text: "pods: unavailable: the cache is broken",
		},
		"unavailable, and the deadline has passed": {
			ctx: late, handler: always(nil, admission.Unavailable(broken, 0)), code: 503, retryAfter: "0", text: "unavailable: the cache is broken",
		},
		"a patch from a validating webhook": {
			kind: admission.TypeValidating, handler: always(admission.Patched(somePatch), nil), code: 500,
			text: "the handler of a validating webhook returned a patch",
		},
		"a patch for a deletion": {
			request: deleted, handler: always(admission.Patched(somePatch), nil), code: 500,
			text: `the handler returned a patch for a request without an object, operation "DELETE"`,
		},
		"a patch for a creation without an object": {
			request: `{"uid":"u","operation":"` + strings.Repeat("x", 1000) + `"}`, handler: always(admission.Patched(somePatch), nil), code: 500,
			text: `the handler returned a patch for a request without an object, operation (1000 bytes)`,
		},
		"a patch with an unknown operation": {
			handler: always(admission.Patched(jsonpatch.Patch{{Op: "merge", Path: "/a"}}), nil), code: 500,
			text: `the handler returned an invalid patch: operation 0: unknown operation "merge"`,
		},
		"a patch without a value": {
			handler: always(admission.Patched(append(jsonpatch.Patch{}, somePatch[0], jsonpatch.Operation{Op: "add", Path: "/a"})), nil), code: 500,
			text: "the handler returned an invalid patch: operation 1: add /a: the value is missing or no JSON",
		},
		"an invalid patch with a path": {
			handler: always(admission.Patched(jsonpatch.Patch{{Op: "remove", Path: "a"}}), nil), code: 500,
			text: `the handler returned an invalid patch: operation 0: remove: path: pointer "a" does not begin with a slash`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = admission.TypeMutating
			}
			if tc.request == "" {
				tc.request = created
			}
			if tc.ctx == nil {
				tc.ctx = t.Context()
			}
			s := serve(t, tc.kind, tc.handler)
			resp := s.answer(post(review(tc.request)).WithContext(tc.ctx))
			if resp.StatusCode != tc.code {
				t.Errorf("got %s", resp.Status)
			}
			if got, want := bodyOf(t, resp), "check.crontab.example.com: "+tc.text+"\n"; got != want {
				t.Errorf("got  %swant %s", got, want)
			}
			if got := resp.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
			connection := ""
			if tc.retryAfter != "" {
				connection = "close"
			}
			if after, got := resp.Header.Get("Retry-After"), resp.Header.Get("Connection"); after != tc.retryAfter || got != connection {
				t.Errorf("Retry-After %q, Connection %q; want %q, %q", after, got, tc.retryAfter, connection)
			}
			level := "level=ERROR"
			if tc.code < 500 || tc.retryAfter != "" {
				level = "level=WARN"
			}
			for _, want := range []string{level, "webhook=check.crontab.example.com", fmt.Sprintf("code=%d", tc.code)} {
				if !strings.Contains(s.log.String(), want) {
					t.Errorf("the log lacks %s: %s", want, s.log)
				}
			}
		})
	}
}

func TestWhatTheCallerDidWrongIs4xx(t *testing.T) {
	good := review(`{"uid":"u"}`)
	tooLarge := func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, int64(len(good)-1)) }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, tc := range map[string]struct {
		body   string
		change func(*http.Request)
		code   int
		text   string
	}{
		"GET":                           {good, func(r *http.Request) { r.Method = "GET" }, 405, "reviews are sent with POST"},
		"PUT":                           {good, func(r *http.Request) { r.Method = "PUT" }, 405, "reviews are sent with POST"},
		"an empty body":                 {"", nil, 400, "the body is empty; send an AdmissionReview"},
		"white space":                   {" ", nil, 400, "the body is not an AdmissionReview: the end in the middle: expected an object for the review at byte 1"},
		"half a review":                 {good[:30], nil, 400, "the body is not an AdmissionReview: the end in a string at byte 30"},
		"YAML":                          {"kind: AdmissionReview", nil, 400, "the body is not an AdmissionReview: expected an object for the review at byte 0"},
		"another kind":                  {`{"kind":"Pod"}`, nil, 400, `the body is of kind "Pod"; send an AdmissionReview`},
		"a body that is too large":      {good, tooLarge, 413, fmt.Sprintf("the review is larger than %d bytes", len(good)-1)},
		"a body that breaks off":        {good, func(r *http.Request) { r.Body = io.NopCloser(brokenReader{}) }, 400, "reading the review: the line is broken"},
		"no content type":               {good, func(r *http.Request) { r.Header.Del("Content-Type") }, 415, `content type "": send application/json`},
		"text":                          {good, header("Content-Type", "text/plain"), 415, `content type "text/plain": send application/json`},
		"protobuf":                      {good, header("Content-Type", "application/vnd.kubernetes.protobuf"), 415, `content type "application/vnd.kubernetes.protobuf": send application/json`},
		"a JSON Patch":                  {good, header("Content-Type", "application/json-patch+json"), 415, `content type "application/json-patch+json": send application/json`},
		"a broken content type":         {good, header("Content-Type", "application/json; charset"), 415, `content type "application/json; charset": send application/json`},
		"a long content type":           {good, header("Content-Type", strings.Repeat("x", 1<<16)), 415, `content type (65536 bytes): send application/json`},
		"an encoding that nobody knows": {good, header("Content-Encoding", "x"), 415, `content encoding "x": send the review as it is`},
		"gzip":                          {good, header("Content-Encoding", "gzip"), 415, `content encoding "gzip": send the review as it is`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, admission.TypeMutating, func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
				t.Error("the handler was called")
				return admission.Allowed(), nil
			})
			r := post(tc.body)
			if tc.change != nil {
				tc.change(r)
			}
			resp := s.answer(r)
			if resp.StatusCode != tc.code {
				t.Errorf("got %s", resp.Status)
			}
			if got, want := bodyOf(t, resp), "check.crontab.example.com: "+tc.text+"\n"; got != want {
				t.Errorf("got  %swant %s", got, want)
			}
			if resp.Header.Get("Retry-After") != "" {
				t.Error("the API server is told to do the same again")
			}
			if allow := resp.Header.Get("Allow"); (allow == "POST") != (tc.code == 405) {
				t.Errorf("Allow: %q", allow)
			}
			if !strings.Contains(s.log.String(), "level=WARN") {
				t.Errorf("logged: %s", s.log)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the line is broken") }

func TestWhatTheCallerMaySend(t *testing.T) {
	good := review(`{"uid":"u"}`)
	for name, change := range map[string]func(*http.Request){
		"what the API server sends":     func(*http.Request) {},
		"a charset":                     func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") },
		"capitals in the content type":  func(r *http.Request) { r.Header.Set("Content-Type", "Application/JSON") },
		"no encoding, said out loud":    func(r *http.Request) { r.Header.Set("Content-Encoding", "identity") },
		"a body of unknown length":      func(r *http.Request) { r.ContentLength = -1 },
		"a body that comes in pieces":   func(r *http.Request) { r.Body = io.NopCloser(oneByte{r.Body}) },
		"a body of exactly the limit":   func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, int64(len(good))) },
		"an announced length of a lie":  func(r *http.Request) { r.ContentLength = 1 << 50 },
		"another length than announced": func(r *http.Request) { r.ContentLength = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, admission.TypeMutating, always(admission.Allowed(), nil))
			r := post(good)
			change(r)
			if resp := s.answer(r); resp.StatusCode != http.StatusOK {
				t.Errorf("got %s: %s", resp.Status, bodyOf(t, resp))
			}
		})
	}
}

type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

func TestABodyThatSomebodyElseHasReadIsAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType, body string
		code              int
		text              string
	}{
		"a review":          {"application/json", review(`{"uid":"u"}`), 200, `"allowed":true`},
		"an empty body":     {"application/json", "", 400, "the body is empty"},
		"something else":    {"text/plain", review(`{"uid":"u"}`), 415, "send application/json"},
		"a body of no form": {"application/json", "{", 400, "check.crontab.example.com: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := serve(t, admission.TypeMutating, always(admission.Allowed(), nil)), httptest.NewRecorder()
			s.Answer(t.Context(), w, http.Header{"Content-Type": {tc.contentType}}, []byte(tc.body))
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

// goneWriter keeps what it is given and fails, as HTTP/2 does when the client is gone.
type goneWriter struct {
	*httptest.ResponseRecorder
	kept []byte
}

func (w *goneWriter) Write(p []byte) (int, error) {
	w.kept = p
	return 0, errors.New("the client is gone")
}

func TestAnswersShareNoMemory(t *testing.T) {
	long := strings.Repeat("x", maxSpace)
	var kept []*goneWriter
	for i := range 16 {
		value := fmt.Appendf(nil, `"%d %s"`, i, long[:i%4*maxSpace/8])
		patch := jsonpatch.Patch{{Op: jsonpatch.Add, Path: "/metadata/labels", Value: value}, {Op: jsonpatch.Remove, Path: "/spec/nodeName"}}
		s := serve(t, admission.TypeMutating, always(admission.Patched(patch), nil))
		body := review(`{"uid":"` + testUID + `","operation":"CREATE","object":{}}`)
		if i%2 == 0 {
			w := &goneWriter{ResponseRecorder: httptest.NewRecorder()}
			s.ServeHTTP(w, post(body))
			kept = append(kept, w)
			continue
		}
		if got := decodeAnswer(t, admissionV1, []byte(bodyOf(t, s.answer(post(body))))); string(got.Patch) != string(patch.AppendJSON(nil)) {
			t.Fatalf("answer %d has the patch %.100s", i, got.Patch)
		}
	}
	for i, w := range kept {
		if got := decodeAnswer(t, admissionV1, w.kept); !strings.Contains(string(got.Patch), fmt.Sprintf(`"value":"%d `, 2*i)) {
			t.Fatalf("answer %d has been overwritten: %.100s", 2*i, got.Patch)
		}
	}
}

func TestTheHandlerGetsTheRequest(t *testing.T) {
	type key struct{}
	body := recorded(t, "notebook.json")
	unchanged := bytes.Clone(body)
	a, err := NewAdmission(definition(admission.TypeMutating, func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		if ctx.Value(key{}) != "value" {
			t.Error("another context")
		}
		if !bytes.Contains(body, req.Object.Raw) || req.Namespace != "team-vision" {
			t.Errorf("got %+v", req)
		}
		return admission.Patched(somePatch).Warn("w"), nil
	}), AdmissionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Review(context.WithValue(t.Context(), key{}, "value"), body)
	if err != nil {
		t.Fatal(err)
	}
	answer := decodeAnswer(t, admissionV1, got.Answer)
	if answer.UID != got.Request.UID || answer.Patch == nil || len(got.Response.Patch) != 1 || len(answer.Warnings) != 1 {
		t.Errorf("got %+v, answer %s", got, got.Answer)
	}
	if !bytes.Equal(body, unchanged) {
		t.Error("the body was changed")
	}
}

func TestReviewReturnsFaults(t *testing.T) {
	cause := errors.New("cause")
	for name, tc := range map[string]struct {
		body    string
		handler admission.HandlerFunc
		want    Fault
	}{
		"the caller's":          {`{}`, nil, Fault{Code: 400}},
		"the handler's":         {review(`{"uid":"u"}`), always(nil, cause), Fault{Code: 500, Err: cause}},
		"the handler's passing": {review(`{"uid":"u"}`), always(nil, admission.Unavailable(cause, time.Minute)), Fault{Code: 503, Retry: true, RetryAfter: time.Minute, Err: cause}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.handler == nil {
				tc.handler = always(admission.Allowed(), nil)
			}
			reviewed, err := serve(t, admission.TypeMutating, tc.handler).Review(t.Context(), []byte(tc.body))
			var fault *Fault
			if reviewed != nil || !errors.As(err, &fault) {
				t.Fatalf("got %+v, %v", reviewed, err)
			}
			if fault.Code != tc.want.Code || fault.Retry != tc.want.Retry || fault.RetryAfter != tc.want.RetryAfter {
				t.Errorf("got %+v", fault)
			}
			if tc.want.Err != nil && !errors.Is(err, tc.want.Err) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

func TestNewAdmissionRefusesABrokenDefinition(t *testing.T) {
	webhook := definition(admission.TypeMutating, always(admission.Allowed(), nil))
	webhook.Name = "short"
	if a, err := NewAdmission(webhook, AdmissionOptions{}); err == nil || a != nil {
		t.Errorf("got %v, %v", a, err)
	}
}

// No content of the object, the old object or the user may appear in a message or in
// the log.
func TestMessagesHoldNothingOfTheObjects(t *testing.T) {
	const canary = "CANARY"
	object := `{"kind":"Secret","data":{"CANARY":"CANARY","list":["CANARY",1]},"CANARY":null}`
	good := review(`{"uid":"u","operation":"CREATE","userInfo":{"username":"CANARY","groups":["CANARY"],"extra":{"CANARY":["CANARY"]}},` +
		`"name":"CANARY","object":` + object + `,"oldObject":` + object + `,"options":` + object + `}`)

	bodies := []string{good}
	for i := range good {
		bodies = append(bodies, good[:i], good[:i]+"\x00"+good[i+1:], good[:i]+"{"+good[i+1:], good[:i]+`"`+good[i:], good[:i]+","+good[i:])
	}
	bodies = append(bodies, strings.ReplaceAll(good, `"list":`, `"CANARY":`), strings.ReplaceAll(good, `"CANARY",1`, "\"CANARY\xff\""),
		strings.ReplaceAll(good, `["CANARY"]`, `"CANARY"`), object, `"CANARY"`, "CANARY")

	s := serve(t, admission.TypeMutating, always(admission.Patched(jsonpatch.Patch{{Op: "add", Path: "/a", Value: []byte("CANARY")}}), nil))
	refused := 0
	for _, body := range bodies {
		s.faults = newFaultLog(s.faults.logger) // log all
		resp := s.answer(post(body))
		if got := bodyOf(t, resp); strings.Contains(got, canary) {
			t.Fatalf("%s for\n%s", got, body)
		}
		if resp.StatusCode != http.StatusOK {
			refused++
		}
	}
	if strings.Contains(s.log.String(), canary) {
		t.Errorf("logged: %s", s.log)
	}
	if logged := strings.Count(s.log.String(), "\n"); refused < len(bodies)/2 || logged != refused {
		t.Errorf("of %d reviews %d were refused and %d logged: the test is about nothing", len(bodies), refused, logged)
	}
}

func TestAdmissionOverTLS(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	s := serve(t, admission.TypeMutating, func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		switch req.Name {
		case "patch":
			return admission.Patched(somePatch), nil
		case "unavailable":
			return nil, admission.Unavailable(errors.New("no cache"), 1500*time.Millisecond)
		case "error":
			return nil, errors.New("broken")
		}
		return admission.DeniedResponse("no"), nil
	})
	const limit = 10_000
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		s.ServeHTTP(w, r)
	}))
	server.StartTLS()
	client := server.Client()
	defer func() {
		client.CloseIdleConnections()
		server.Close()
		goleak.VerifyNone(t, ignore)
	}()

	// The calls run one after the other. Each says whether it needs a new connection,
	// which depends on the call before it.
	for _, call := range []struct {
		name  string
		body  io.Reader
		fresh bool
		code  int
		check func(t *testing.T, resp *http.Response, body string)
	}{
		{"a patch", strings.NewReader(review(`{"uid":"a","name":"patch","object":{}}`)), true, 200,
			func(t *testing.T, resp *http.Response, body string) {
				if got := decodeAnswer(t, admissionV1, []byte(body)); got.UID != "a" || !got.Allowed || got.Patch == nil {
					t.Errorf("got %s", body)
				}
			}},
		{"a denial is HTTP 200, and the connection stays", strings.NewReader(review(`{"uid":"b"}`)), false, 200,
			func(t *testing.T, resp *http.Response, body string) {
				if got := decodeAnswer(t, admissionV1, []byte(body)); got.UID != "b" || got.Allowed || got.Result.Code != 403 {
					t.Errorf("got %s", body)
				}
			}},
		{"a review in chunks", io.MultiReader(strings.NewReader(review(`{"uid":"c"`)[:50]), strings.NewReader(review(`{"uid":"c"}`)[50:])), false, 200, nil},
		{"a fault leaves the connection open", strings.NewReader(review(`{"uid":"d","name":"error"}`)), false, 500, nil},
		{"a passing fault closes it", strings.NewReader(review(`{"uid":"e","name":"unavailable"}`)), false, 503,
			func(t *testing.T, resp *http.Response, body string) {
				if !resp.Close || resp.Header.Get("Retry-After") != "2" {
					t.Errorf("close %t, header %v", resp.Close, resp.Header)
				}
			}},
		{"the caller's fault leaves it open", strings.NewReader(`{}`), true, 400, nil},
		{"a review that is too large", strings.NewReader(strings.Repeat(" ", limit) + review(`{"uid":"f"}`)), false, 413, nil},
		{"the server goes on", strings.NewReader(review(`{"uid":"g"}`)), true, 200, nil},
	} {
		t.Run(call.name, func(t *testing.T) {
			var reused bool
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/check?timeout=10s", call.body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body := bodyOf(t, resp)
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			if resp.StatusCode != call.code || resp.ProtoMajor != 1 || reused == call.fresh {
				t.Errorf("got %s over %s, connection reused: %t\n%s", resp.Status, resp.Proto, reused, body)
			}
			if call.check != nil {
				call.check(t, resp, body)
			}
		})
	}
}
