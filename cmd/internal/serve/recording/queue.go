// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// The limits of the samples that are not yet written. Further ones are dropped, so that neither a
// slow disk nor large reviews delay a call or take the memory of calls.
const (
	queueLength = 64
	queueBytes  = 8 << 20
)

// queue holds samples until they are written, at most queueLength and queueBytes. Samples whose
// call is still running, and the one that is being written, are part of its bytes.
type queue struct {
	samples chan sample
	bytes   atomic.Int64
}

func newQueue() *queue { return &queue{samples: make(chan sample, queueLength)} }

// reserve reports whether there is room for as many bytes, and takes it.
func (q *queue) reserve(bytes int64) bool {
	if q.bytes.Add(bytes) <= queueBytes {
		return true
	}
	q.release(bytes)
	return false
}

func (q *queue) release(bytes int64) { q.bytes.Add(-bytes) }

// A sample is a review, of which it shares no memory that a handler or caller may change.
type sample struct {
	at       time.Time
	webhook  string
	request  *admissionv1.AdmissionRequest
	response *admissionv1.AdmissionResponse // without UID and patch; nil if there is none
	patch    []byte
	err      string
	bytes    int64 // that the sample has reserved
}

// begin copies a request, or reports that there is no room for it.
func (q *queue) begin(webhook string, req *admissionv1.AdmissionRequest) (sample, bool) {
	s := sample{webhook: webhook, bytes: requestBytes(req)}
	if !q.reserve(s.bytes) {
		return s, false
	}
	s.request = req.DeepCopy() // the handler may change the original
	return s, true
}

// end adds the result of the call and queues the sample. It reports whether there was room.
func (q *queue) end(s sample, answer *admission.Response, err error) bool {
	more := responseBytes(answer)
	if err != nil {
		s.err = err.Error()
		more += int64(len(s.err))
	}
	if !q.reserve(more) {
		q.release(s.bytes)
		return false
	}
	s.at, s.bytes = time.Now(), s.bytes+more
	if answer != nil {
		s.response = (&admissionv1.AdmissionResponse{
			Allowed: answer.Allowed, Result: answer.Status, Warnings: answer.Warnings, AuditAnnotations: answer.AuditAnnotations,
		}).DeepCopy()
		if len(answer.Patch) > 0 {
			s.patch = answer.Patch.AppendJSON(nil)
		}
	}
	select {
	case q.samples <- s:
		return true
	default:
		q.release(s.bytes)
		return false
	}
}

const (
	stringBytes = 16  // of a string beside its text
	entryBytes  = 64  // of an entry of a map beside the texts of its key and value
	fixedBytes  = 512 // of a request without what its fields refer to
)

// requestBytes returns the memory that a copy of a request takes.
func requestBytes(req *admissionv1.AdmissionRequest) int64 {
	total := fixedBytes + len(req.Object.Raw) + len(req.OldObject.Raw) + len(req.Options.Raw) +
		len(req.UID) + len(req.Name) + len(req.Namespace) + len(req.SubResource) + len(req.RequestSubResource)
	for _, text := range [...]string{
		req.Kind.Group, req.Kind.Version, req.Kind.Kind, req.Resource.Group, req.Resource.Version, req.Resource.Resource,
		string(req.Operation), req.UserInfo.Username, req.UserInfo.UID,
	} {
		total += len(text)
	}
	if kind := req.RequestKind; kind != nil {
		total += len(kind.Group) + len(kind.Version) + len(kind.Kind)
	}
	if resource := req.RequestResource; resource != nil {
		total += len(resource.Group) + len(resource.Version) + len(resource.Resource)
	}
	return int64(total) + textBytes(req.UserInfo.Groups) + extraBytes(req.UserInfo.Extra)
}

func extraBytes(extra map[string]authenticationv1.ExtraValue) (total int64) {
	for name, values := range extra {
		total += entryBytes + int64(len(name)) + textBytes(values)
	}
	return total
}

func textBytes(texts []string) (total int64) {
	for _, text := range texts {
		total += stringBytes + int64(len(text))
	}
	return total
}

// responseBytes returns the memory that a copy of a response takes, with the text of its patch.
func responseBytes(answer *admission.Response) int64 {
	if answer == nil {
		return 0
	}
	total := fixedBytes + textBytes(answer.Warnings)
	for name, value := range answer.AuditAnnotations {
		total += entryBytes + int64(len(name)+len(value))
	}
	for _, operation := range answer.Patch {
		total += entryBytes + int64(len(operation.Op)+len(operation.Path)+len(operation.From)+len(operation.Value))
	}
	if status := answer.Status; status != nil {
		total += int64(len(status.Message) + len(status.Reason))
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				total += entryBytes + int64(len(cause.Type)+len(cause.Message)+len(cause.Field))
			}
		}
	}
	return total
}
