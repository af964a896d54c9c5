// SPDX-License-Identifier: Apache-2.0

// Package recording records a sample of admission reviews and their decisions in files and in
// memory, for replay against another configuration. It redacts values that may be secret.
package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/natefinch/lumberjack.v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	testv1alpha1 "github.com/sallyport-io/sallyport/api/test/v1alpha1"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// FileName is the name of the current file. Rotated files have a time in their names.
const FileName = "reviews.jsonl"

// Validate reports every problem, by field name.
func Validate(s *configv1alpha1.Recording, path *field.Path) field.ErrorList {
	errs := tags.Validate(s, path)
	if !enabled(s) && s.SamplingRatePerMillion != 0 {
		errs = append(errs, field.Required(path.Child("directory"), "say where samples are written, or with recentReviews how many are kept in memory"))
	}
	if enabled(s) && s.SamplingRatePerMillion == 0 {
		errs = append(errs, field.Required(path.Child("samplingRatePerMillion"), "say how many of a million reviews are recorded"))
	}
	if s.Directory != "" && !filepath.IsAbs(s.Directory) {
		errs = append(errs, field.Invalid(path.Child("directory"), s.Directory, "must be an absolute path"))
	}
	return errs
}

// enabled reports whether reviews are recorded anywhere.
func enabled(s *configv1alpha1.Recording) bool { return s.Directory != "" || s.RecentReviews > 0 }

// A Recorder records samples. A nil Recorder records nothing.
type Recorder struct {
	settings  configv1alpha1.Recording
	redaction Redaction
	logger    *slog.Logger
	file      *lumberjack.Logger // nil if nothing is written
	recent    *ring              // nil if nothing is kept in memory
	queue     *queue
	reviews   *prometheus.CounterVec
	failing   bool // the last write failed
}

// New returns a recorder, or nil if the settings disable it. It registers its metrics.
func New(s configv1alpha1.Recording, logger *slog.Logger, metrics prometheus.Registerer) (*Recorder, error) {
	if !enabled(&s) {
		return nil, nil
	}
	r := &Recorder{
		settings: s, redaction: Redaction{Annotations: s.Annotations, Variables: s.Variables}, logger: logger,
		queue: newQueue(),
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_recorded_reviews_total", Help: "Admission reviews in the sample, by result: written (to a file or to memory), dropped because 64 reviews or 8 MiB are waiting, or failed to be written.",
		}, []string{"result"}),
	}
	if s.Directory != "" {
		if err := os.MkdirAll(s.Directory, 0o700); err != nil {
			return nil, err
		}
		r.file = &lumberjack.Logger{
			Filename: filepath.Join(s.Directory, FileName), MaxSize: int(s.MaxSizeMegabytes), MaxBackups: int(s.MaxFiles - 1), MaxAge: int(s.MaxAgeDays),
		}
	}
	if s.RecentReviews > 0 {
		r.recent = newRing(int(s.RecentReviews), int(s.RecentMegabytes))
	}
	for _, result := range []string{"written", "dropped", "failed"} {
		r.reviews.WithLabelValues(result)
	}
	if err := metrics.Register(r.reviews); err != nil {
		return nil, err
	}
	return r, nil
}

// Recent answers with the recent reviews; see [RecentPath]. It is nil if none are kept in memory.
func (r *Recorder) Recent() http.Handler {
	if r == nil || r.recent == nil {
		return nil
	}
	return r.recent
}

// Run writes until the context ends, and then writes the queue.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		select {
		case s := <-r.queue.samples:
			r.record(s)
			continue
		case <-ctx.Done():
		}
		break
	}
	for {
		select {
		case s := <-r.queue.samples:
			r.record(s)
		default:
			if r.file == nil {
				return nil
			}
			return r.file.Close()
		}
	}
}

// Handle calls a handler and records the request with the response if it is in the sample. The
// UID decides, so all webhooks and replicas record the same requests.
func (r *Recorder) Handle(ctx context.Context, webhook string, req *admissionv1.AdmissionRequest, handler admission.Handler) (*admission.Response, error) {
	if r == nil || !r.samples(webhook, req) {
		return handler.Handle(ctx, req)
	}
	s, room := r.queue.begin(webhook, req)
	answer, err := handler.Handle(ctx, req)
	if !room || !r.queue.end(s, answer, err) {
		r.reviews.WithLabelValues("dropped").Inc()
	}
	return answer, err
}

func (r *Recorder) samples(webhook string, req *admissionv1.AdmissionRequest) bool {
	if len(r.settings.Webhooks) > 0 && !slices.Contains(r.settings.Webhooks, webhook) {
		return false
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(req.UID))
	return hash.Sum32()%1_000_000 < uint32(r.settings.SamplingRatePerMillion) // it is not negative
}

func (r *Recorder) record(s sample) {
	defer r.queue.release(s.bytes)
	line, err := r.line(s)
	if err == nil && r.recent != nil {
		r.recent.add(line)
	}
	if err == nil && r.file != nil {
		_, err = r.file.Write(line)
	}
	if err == nil {
		r.reviews.WithLabelValues("written").Inc()
		r.failing = false
		return
	}
	r.reviews.WithLabelValues("failed").Inc()
	if !r.failing {
		r.logger.Error("a review could not be recorded", "directory", r.settings.Directory, "error", err)
	}
	r.failing = true
}

// line encodes a sample as a RecordedReview, one line of JSON.
func (r *Recorder) line(s sample) ([]byte, error) {
	request := *s.request
	var err error
	if request.Object.Raw, err = r.redaction.Object(request.Object.Raw); err != nil {
		return nil, err
	}
	if request.OldObject.Raw, err = r.redaction.Object(request.OldObject.Raw); err != nil {
		return nil, err
	}
	request.Object.Object, request.OldObject.Object, request.Options.Object = nil, nil, nil
	request.UserInfo.Extra = redactExtra(request.UserInfo.Extra)
	out := testv1alpha1.RecordedReview{
		TypeMeta: metav1.TypeMeta{APIVersion: testv1alpha1.GroupVersion.String(), Kind: testv1alpha1.RecordedReviewKind},
		Time:     metav1.NewMicroTime(s.at.UTC()), Webhook: s.webhook,
		Review: admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/" + reviewversion.V1, Kind: "AdmissionReview"}, Request: &request},
	}
	if s.err != "" {
		out.Error = s.err
	} else if s.response != nil {
		out.Review.Response = s.response
		out.Review.Response.UID = request.UID
		if s.patch != nil {
			if s.response.Patch, err = r.redaction.Patch(s.patch, request.Kind.Kind); err != nil {
				return nil, err
			}
			s.response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(&out)
	return line.Bytes(), err
}

// redactExtra keeps only the keys of a user's extra fields.
func redactExtra(extra map[string]authenticationv1.ExtraValue) map[string]authenticationv1.ExtraValue {
	if extra == nil {
		return nil
	}
	out := map[string]authenticationv1.ExtraValue{}
	for name := range extra {
		out[name] = authenticationv1.ExtraValue{Redacted}
	}
	return out
}
