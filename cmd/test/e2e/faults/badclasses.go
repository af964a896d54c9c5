// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
)

// A badClass is a kind of input that no API server sends.
type badClass struct {
	name string
	send []byte // all that is written
	// statuses are the answers that are right. 0 is none: the connection is closed.
	statuses []int
	tls      *tls.Config // nil: as usual
	plain    bool        // no TLS
	// waits is whether the input is not at its end: the server has to give up waiting.
	waits bool
	// leaves is whether the caller goes away without waiting for an answer.
	leaves bool
}

// badClasses are all classes, made from one good review.
func badClasses() ([]badClass, error) {
	pod := newPod("posted", 0, typicalPodDefaults)
	object, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	review := newReview("row-bad-input")
	review.Request.Object.Raw = object
	good, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	b := builder{good: good}
	classes := b.classes()
	return classes, b.err
}

// newReview asks about a pod that is created; the object is missing.
func newReview(namespace string) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u-1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: namespace, Operation: admissionv1.Create,
		},
	}
}

// A builder makes inputs of a good review.
type builder struct {
	good []byte
	err  error
}

// edit replaces a part of the good review, which must be there.
func (b *builder) edit(old, replacement string) []byte {
	if !bytes.Contains(b.good, []byte(old)) {
		b.err = fmt.Errorf("the good review does not hold %s", old)
	}
	return bytes.Replace(b.good, []byte(old), []byte(replacement), 1)
}

// object is a review with another object.
func (b *builder) object(value string) []byte {
	return []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
		`"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"row-bad-input","operation":"CREATE","object":` + value + `}}`)
}

// post is a whole request with that body.
func post(body []byte) []byte {
	return request("POST", poddefault.Path+"?timeout=10s", jsonHeader, body)
}

const jsonHeader = "Content-Type: application/json\r\n"

func request(method, target, header string, body []byte) []byte {
	return append(fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n",
		method, target, header, len(body)), body...)
}

// raw is a request whose header is all said.
func raw(header string, body []byte) []byte {
	return append([]byte(strings.ReplaceAll(header, "\n", "\r\n")+"\r\n\r\n"), body...)
}

func chunked(body []byte) []byte {
	return append(append(fmt.Appendf(nil, "%x\r\n", len(body)), body...), "\r\n0\r\n\r\n"...)
}

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // to memory
	_ = w.Close()
	return out.Bytes()
}

func (b *builder) classes() []badClass {
	const line = "POST " + poddefault.Path + "?timeout=10s HTTP/1.1\nHost: x\nConnection: close\n"
	const jsonLine = line + "Content-Type: application/json\n"
	bad, denied := []int{400}, []int{200}
	good := b.good
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return []badClass{
		// What is not JSON, or not whole.
		{name: "an empty body", send: post(nil), statuses: bad},
		{name: "white space", send: post(bytes.Repeat([]byte(" "), 4096)), statuses: bad},
		{name: "a review cut in half", send: post(good[:len(good)/2]), statuses: bad},
		{name: "a review without its last byte", send: post(good[:len(good)-1]), statuses: bad},
		{name: "two reviews", send: post(append(bytes.Clone(good), good...)), statuses: bad},
		{name: "a review and rubbish", send: post(append(bytes.Clone(good), "]x"...)), statuses: bad},
		{name: "XML", send: post([]byte("<review/>")), statuses: bad},
		{name: "YAML", send: post([]byte("apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n")), statuses: bad},
		{name: "zero bytes", send: post(make([]byte, 4096)), statuses: bad},
		{name: "a byte order mark", send: post(append([]byte("\xef\xbb\xbf"), good...)), statuses: bad},
		{name: "UTF-16", send: post([]byte("\xff\xfe{\x00}\x00")), statuses: bad},
		{name: "protobuf", send: post([]byte("k8s\x00\n\x0c\n\x02v1\x12\x06Review")), statuses: bad},
		{name: "null", send: post([]byte("null")), statuses: bad},
		{name: "a list", send: post([]byte("[]")), statuses: bad},
		{name: "a number", send: post([]byte("1e999")), statuses: bad},
		{name: "a string", send: post([]byte(`"AdmissionReview"`)), statuses: bad},
		{name: "a comment", send: post(append([]byte("// review\n"), good...)), statuses: bad},
		{name: "single quotes", send: post(bytes.ReplaceAll(good, []byte(`"`), []byte("'"))), statuses: bad},
		{name: "invalid UTF-8", send: post(b.edit("example.com", "example\xff\xfe.com")), statuses: bad},
		{name: "half a surrogate pair", send: post(b.edit("example.com", `example\ud800.com`)), statuses: bad},
		{name: "a control character in a string", send: post(b.edit("example.com", "example\x01.com")), statuses: bad},
		// What is not a review.
		{name: "an empty object", send: post([]byte("{}")), statuses: bad},
		{name: "another kind", send: post(b.edit(`"kind":"AdmissionReview"`, `"kind":"ConversionReview"`)), statuses: bad},
		{name: "kinds in other case", send: post(b.edit(`"kind":"AdmissionReview"`, `"KIND":"AdmissionReview"`)), statuses: bad},
		{name: "another version", send: post(b.edit("admission.k8s.io/v1", "admission.k8s.io/v9")), statuses: bad},
		{name: "another group", send: post(b.edit("admission.k8s.io/v1", "example.com/v1")), statuses: bad},
		{name: "no request", send: post([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)), statuses: bad},
		{name: "request: null", send: post([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`)), statuses: bad},
		{name: "request: a list", send: post([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}`)), statuses: bad},
		{name: "an empty uid", send: post(b.edit(`"uid":"u-1"`, `"uid":""`)), statuses: bad},
		{name: "a uid that is a number", send: post(b.edit(`"uid":"u-1"`, `"uid":1`)), statuses: bad},
		{name: "a uid twice", send: post(b.edit(`"uid":"u-1"`, `"uid":"u-1","uid":"u-2"`)), statuses: bad},
		{name: "an operation that is a list", send: post(b.edit(`"operation":"CREATE"`, `"operation":["CREATE"]`)), statuses: bad},
		{name: "a dryRun that is a string", send: post(b.edit(`"operation":"CREATE"`, `"operation":"CREATE","dryRun":"yes"`)), statuses: bad},
		// Objects that are not pods.
		{name: "object: null", send: post(b.object("null")), statuses: denied},
		{name: "object: a list", send: post(b.object("[1]")), statuses: denied},
		{name: "object: a string", send: post(b.object(`"pod"`)), statuses: denied},
		{name: "object: empty", send: post(b.object("{}")), statuses: denied},
		{name: "metadata: a number", send: post(b.object(`{"metadata":1}`)), statuses: denied},
		{name: "labels: a list", send: post(b.object(`{"metadata":{"labels":[]},"spec":{"containers":[{}]}}`)), statuses: denied},
		{name: "a label that is an object", send: post(b.object(`{"metadata":{"labels":{"inject-d00000":{}}},"spec":{"containers":[{}]}}`)), statuses: denied},
		{name: "no spec", send: post(b.object(`{"metadata":{"labels":{"inject-d00000":"true"}}}`)), statuses: denied},
		{name: "containers: an object", send: post(b.object(`{"metadata":{"labels":{"inject-d00000":"true"}},"spec":{"containers":{}}}`)), statuses: denied},
		{name: "a container that is null", send: post(b.object(`{"metadata":{"labels":{"inject-d00000":"true"}},"spec":{"containers":[null]}}`)), statuses: denied},
		{name: "env: a string", send: post(b.object(`{"metadata":{"labels":{"inject-d00000":"true"}},"spec":{"containers":[{"name":"a","env":"x"}]}}`)), statuses: denied},
		{name: "spec twice", send: post(b.edit(`"spec":{`, `"spec":{},"spec":{`)), statuses: bad},
		{name: "another resource", send: post(b.edit(`"resource":"pods"`, `"resource":"secrets"`)), statuses: denied},
		{name: "unknown fields", send: post(b.edit(`"spec":{`, `"future":{"a":[1e400]},"spec":{`)), statuses: denied},
		{name: "a huge number", send: post(b.edit(`"spec":{`, `"x":`+strings.Repeat("9", 100_000)+`,"spec":{`)), statuses: denied},
		// What is large or deep.
		{name: "ten thousand levels", send: post(b.edit(`"spec":{`, `"x":`+deep(10_000)+`,"spec":{`)), statuses: bad},
		{name: "three hundred levels", send: post(b.edit(`"spec":{`, `"x":`+deep(300)+`,"spec":{`)), statuses: bad},
		{name: "levels that never end", send: post(bytes.Repeat([]byte(`{"a":`), 10_000)), statuses: bad},
		{name: "a key of a megabyte", send: post(b.edit(`"spec":{`, `"`+strings.Repeat("k", 1<<20)+`":1,"spec":{`)), statuses: denied},
		{name: "nine MiB announced", send: raw(jsonLine+"Content-Length: 9437184", nil), statuses: []int{413}},
		// 503: it has made room for a body that arrives faster.
		{name: "nine MiB in chunks", send: raw(jsonLine+"Transfer-Encoding: chunked", chunked(bytes.Repeat([]byte(" "), 9<<20))), statuses: []int{413, 429, 503, 0}},
		{name: "a header of 64 KiB", send: request("POST", poddefault.Path, jsonHeader+"X-Long: "+strings.Repeat("x", 64<<10)+"\r\n", good), statuses: []int{431}},
		{name: "a target of 64 KiB", send: request("POST", poddefault.Path+"?"+strings.Repeat("x", 64<<10), jsonHeader, good), statuses: []int{431}},
		// HTTP that is not what it should be.
		{name: "gzip", send: request("POST", poddefault.Path, jsonHeader+"Content-Encoding: gzip\r\n", compressed(good)), statuses: []int{400, 415}},
		{name: "another content type", send: request("POST", poddefault.Path, "Content-Type: text/plain\r\n", good), statuses: []int{415}},
		{name: "no content type", send: request("POST", poddefault.Path, "", good), statuses: []int{415}},
		{name: "GET", send: request("GET", poddefault.Path, "", nil), statuses: []int{405}},
		{name: "PUT", send: request("PUT", poddefault.Path, jsonHeader, good), statuses: []int{405}},
		{name: "an unknown method", send: request("BREW", poddefault.Path, jsonHeader, good), statuses: []int{405}},
		{name: "an unknown path", send: request("POST", "/elsewhere", jsonHeader, good), statuses: []int{404}},
		{name: "a path with dots", send: request("POST", "/x/.."+poddefault.Path, jsonHeader, good), statuses: []int{404}},
		{name: "a negative timeout", send: request("POST", poddefault.Path+"?timeout=-5s", jsonHeader, good), statuses: []int{200, 400, 429, 500, 503, 504}},
		{name: "a timeout of an age", send: request("POST", poddefault.Path+"?timeout=876000h", jsonHeader, good), statuses: denied},
		{name: "an invalid timeout", send: request("POST", poddefault.Path+"?timeout=%00", jsonHeader, good), statuses: []int{200, 400}},
		{name: "two lengths", send: raw(jsonLine+"Content-Length: 5\nContent-Length: 6", []byte("{}")), statuses: bad},
		{name: "a length and chunks", send: raw(jsonLine+"Content-Length: 5\nTransfer-Encoding: chunked", chunked(good)), statuses: []int{200, 400}},
		{name: "a negative length", send: raw(jsonLine+"Content-Length: -1", good), statuses: bad},
		{name: "a chunk that is too long", send: raw(jsonLine+"Transfer-Encoding: chunked", []byte("ffffffffffffffffff\r\n{}")), statuses: bad},
		{name: "another transfer encoding", send: raw(jsonLine+"Transfer-Encoding: identity, gzip", good), statuses: []int{400, 501}},
		{name: "no Host", send: raw("POST "+poddefault.Path+" HTTP/1.1\nContent-Length: 0", nil), statuses: bad},
		{name: "HTTP/1.0", send: raw("POST "+poddefault.Path+" HTTP/1.0\nContent-Type: application/json\nContent-Length: 2", []byte("{}")), statuses: bad},
		{name: "HTTP/9.9", send: raw("POST "+poddefault.Path+" HTTP/9.9\nHost: x", nil), statuses: []int{400, 505}},
		{name: "the preface of HTTP/2", send: []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"), statuses: []int{400, 404, 505, 0}},
		{name: "an upgrade to HTTP/2", send: raw(jsonLine+"Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__\nContent-Length: 2", []byte("{}")), statuses: bad},
		{name: "rubbish in place of HTTP", send: []byte("\x00\x01\x02\x03\r\n\r\n"), statuses: bad},
		// What is under HTTP.
		{name: "HTTP without TLS", send: post(good), plain: true, statuses: []int{400}},
		{name: "rubbish in place of TLS", send: bytes.Repeat([]byte{0x16, 0x03, 0x01, 0xff, 0xff}, 100), plain: true, statuses: []int{0}},
		{name: "TLS 1.0", tls: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, statuses: []int{0}},
		{name: "TLS for another protocol", tls: &tls.Config{NextProtos: []string{"smtp"}}, statuses: []int{0}},
		// Callers that stop in the middle.
		{name: "a connection that says nothing", plain: true, waits: true, statuses: []int{0}},
		{name: "a header that does not end", send: []byte("POST " + poddefault.Path + " HTTP/1.1\r\nHost: x\r\nX-A: "), waits: true, statuses: []int{0, 408}},
		{name: "a body that does not come", send: raw(jsonLine+"Content-Length: 5000", nil), waits: true, statuses: []int{408}},
		{name: "a body that stops", send: raw(jsonLine+"Content-Length: 500000", good), waits: true, statuses: []int{408}},
		{name: "chunks that stop", send: raw(jsonLine+"Transfer-Encoding: chunked", []byte("fff\r\n{")), waits: true, statuses: []int{408}},
		{name: "gone in the middle of the body", send: raw(jsonLine+"Content-Length: 500000", good), leaves: true, statuses: []int{0}},
		{name: "gone before the answer", send: post(good), leaves: true, statuses: []int{0}},
	}
}
