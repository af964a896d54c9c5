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
	o, err := parseServerFlags("floor", args)
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(o.certDir, certFile), filepath.Join(o.certDir, keyFile))
	if err != nil {
		return err
	}
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	answer := []byte(cannedAllow)
	contentType := []string{"application/json"}
	contentLength := []string{strconv.Itoa(len(answer))}

	server := &http.Server{
		ErrorLog:  log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Protocols: new(http.Protocols),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			buffer := buffers.Get().(*[]byte)
			defer buffers.Put(buffer)
			if int64(cap(*buffer)) < r.ContentLength {
				*buffer = make([]byte, r.ContentLength)
			}
			if r.ContentLength > 0 {
				if _, err := io.ReadFull(r.Body, (*buffer)[:r.ContentLength]); err != nil {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
			}
			header := w.Header()
			header["Content-Type"] = contentType
			header["Content-Length"] = contentLength
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
