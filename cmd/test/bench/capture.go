// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// captureToFiles records all reviews anew into a folder that exists.
func captureToFiles(ctx context.Context, dir string, progress progress) (err error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("no folder %s: run from the root of the repository", dir)
	}
	reviews, err := capture(ctx)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if reviews[conversionReview], err = captureConversion(ctx, temporary); err != nil {
		return fmt.Errorf("recording %s: %w", conversionReview, err)
	}
	for _, r := range append(recordings[:len(recordings):len(recordings)], recording{name: conversionReview}) {
		file := filepath.Join(dir, r.name+".json")
		if err := os.WriteFile(file, reviews[r.name], 0o644); err != nil {
			return err
		}
		progress.sayf("%s: %d bytes", file, len(reviews[r.name]))
	}
	return nil
}

// capture creates the objects of all recordings on a fresh API server that calls
// a webhook which keeps what it gets, and returns the reviews by the names of
// the recordings.
func capture(ctx context.Context) (_ map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	certificate, err := writeCertificate(dir)
	if err != nil {
		return nil, err
	}
	recorder, err := startRecorder(dir)
	if err != nil {
		return nil, err
	}
	defer recorder.stop()
	cp, err := startControlPlane(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer cp.Kill()

	// The timeout and the versions are the ones a real configuration has.
	err = cp.register(ctx, registration{
		name: "recorder.bench.sallyport.io", url: recorder.url,
		caBundle: certificate, reviewVersions: []string{"v1", "v1beta1"}, everywhere: []string{"services", "namespaces"},
	})
	if err != nil {
		return nil, err
	}
	reviews := map[string][]byte{}
	for _, r := range recordings {
		if reviews[r.name], err = cp.record(ctx, r, recorder); err != nil {
			return nil, fmt.Errorf("recording %s: %w", r.name, err)
		}
	}
	return reviews, nil
}

func (cp *controlPlane) record(ctx context.Context, r recording, recorder *recorder) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(r.object, &object.Object); err != nil {
		return nil, err
	}
	if r.change != nil {
		r.change(object)
	}
	config := rest.CopyConfig(cp.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: r.creator.user, Groups: r.creator.groups}
	clients, err := client.New(config, client.Options{Mapper: cp.objects.RESTMapper()})
	if err != nil {
		return nil, err
	}
	if err := clients.Create(ctx, object, client.FieldOwner(r.creator.manager)); err != nil {
		return nil, err
	}
	return recorder.last(), cp.objects.Delete(ctx, object, client.GracePeriodSeconds(0))
}

// A recorder is a webhook that allows everything and keeps the last review.
type recorder struct {
	url    string
	server *http.Server
	done   chan struct{}

	mu     sync.Mutex
	review []byte
}

// startRecorder serves with the certificate in dir.
func startRecorder(dir string) (*recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &recorder{url: "https://" + listener.Addr().String() + "/record", done: make(chan struct{})}
	r.server = &http.Server{Handler: r}
	go func() {
		defer close(r.done)
		_ = r.server.ServeTLS(listener, filepath.Join(dir, certFile), filepath.Join(dir, keyFile)) // ends with stop
	}()
	return r, nil
}

func (r *recorder) stop() {
	_ = r.server.Close()
	<-r.done
}

func (r *recorder) last() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.review
}

// ServeHTTP implements [http.Handler].
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var envelope admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &envelope); err == nil && envelope.Kind == "ConversionReview" {
		r.mu.Lock()
		r.review = body
		r.mu.Unlock()
		http.Error(w, "recorded", http.StatusNotImplemented)
		return
	} else if err != nil || envelope.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.review = body
	r.mu.Unlock()
	answer := admissionv1.AdmissionReview{
		TypeMeta: envelope.TypeMeta,
		Response: &admissionv1.AdmissionResponse{UID: envelope.Request.UID, Allowed: true},
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the API server notices
}
