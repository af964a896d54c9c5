// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
)

// cannedAllow is the smallest answer that lets an object pass. It carries no
// UID, which would mean to look into the review; kube-apiserver does not ask for
// one in v1beta1.
const cannedAllow = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":true}}`

// serveFloor is the cheapest webhook server that the standard library can give:
// no timeouts, no routing, no metrics, one buffer for each request at work, and
// nothing but TLS, HTTP and reading the body.
func serveFloor(args []string) error {
	answer := []byte(cannedAllow)
	length := []string{strconv.Itoa(len(answer))}
	return serveCheaply("floor", args, func(_, _ []byte) ([]byte, []string) { return answer, length })
}

// serveCheaply reads bodies, and answers what reply makes of them: the answer, which
// may be in the space that it gets, and its Content-Length. No answer is a refusal.
func serveCheaply(name string, args []string, reply func(space, body []byte) (answer []byte, length []string)) error {
	o, err := parseServerFlags(name, args)
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(o.certDir, certFile), filepath.Join(o.certDir, keyFile))
	if err != nil {
		return err
	}
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	contentType := []string{"application/json"}

	server := &http.Server{
		ErrorLog:  log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Protocols: new(http.Protocols),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			buffer := buffers.Get().(*[]byte)
			defer buffers.Put(buffer)
			size := max(int(r.ContentLength), 0)
			if cap(*buffer) < 2*size {
				*buffer = make([]byte, 2*size)
			}
			body := (*buffer)[:size:size]
			if _, err := io.ReadFull(r.Body, body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			answer, length := reply((*buffer)[size:size], body)
			if answer == nil && size > 0 {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			header := w.Header()
			header["Content-Type"] = contentType
			header["Content-Length"] = length
			_, _ = w.Write(answer) // the caller notices
		}),
	}
	server.Protocols.SetHTTP1(true)

	listener, err := tls.Listen("tcp", o.address(), server.TLSConfig)
	if err != nil {
		return err
	}
	endWithParent()
	return server.Serve(listener)
}
