// SPDX-License-Identifier: Apache-2.0

// Package recorded replays recorded admission requests against another configuration and reports
// the decisions that differ.
package recorded

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	testv1alpha1 "github.com/sallyport-io/sallyport/api/test/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// A Record is a recorded admission request.
type Record struct {
	review.Question
	// Webhook is the webhook that was called; empty if it is unknown or there were several.
	Webhook string
	// Was is the recorded decision; nil if it is unknown.
	Was *Decision
	// response is the response that the patch of Was is from.
	response *manifest.Object
}

// A Decision is the outcome of a request.
type Decision struct {
	Denied  bool
	By      string // the webhook that denied; may be empty
	Message string // of the denial
	// Failed says why a webhook could not decide. All other fields are then empty.
	Failed   string
	Warnings []string
	// After is the object after mutation; nil if it is unknown.
	After jsontext.Value
	// Patch is what one webhook changed in the request's object; nil if there is none, or several
	// webhooks were called. After of a recorded decision then lacks it until it is applied.
	Patch jsontext.Value

	uncalled bool // no webhook was called for it
}

// The reasons for skipping a record.
const (
	notARequest    = "no recorded review, AdmissionReview or audit event"
	otherStage     = "audit events of other stages than ResponseComplete"
	otherVerb      = "audit events of other verbs than create: the log lacks the object as it was"
	withoutObject  = "audit events without the object: the audit level was below Request"
	notByAdmission = "audit events of requests that failed for other reasons than admission"
	reading        = "audit events of requests that read"
	uncovered      = "requests that no webhook is called for"
)

// harmless are the reasons that leave nothing undecided: another event has the request, or webhooks had
// and have no part in it.
var harmless = map[string]bool{otherStage: true, notByAdmission: true, reading: true}

// read reads a record. If there is none, skipped says why.
func read(o *manifest.Object) (record *Record, skipped string, err error) {
	switch {
	case o.IsAdmissionReview():
		record, err = readReview(o)
		return record, "", err
	case o.APIVersion == testv1alpha1.GroupVersion.String() && o.Kind == testv1alpha1.RecordedReviewKind:
		record, err = readRecorded(o)
		return record, "", err
	case o.APIVersion == auditv1.SchemeGroupVersion.String() && o.Kind == "Event":
		return readAudit(o)
	}
	return nil, notARequest, nil
}

// readReview reads an AdmissionReview, with or without a response.
func readReview(o *manifest.Object) (*Record, error) {
	question, err := review.Recorded(o)
	if err != nil {
		return nil, err
	}
	var answered struct {
		Response *admissionv1.AdmissionResponse `json:"response"`
	}
	if err := o.Decode(&answered); err != nil {
		return nil, err
	}
	record := &Record{Question: question}
	if response := answered.Response; response != nil {
		record.Was = &Decision{Denied: !response.Allowed, Warnings: response.Warnings, After: jsontext.Value(question.Request.Object.Raw)}
		if record.Was.Denied && response.Result != nil {
			record.Was.Message = response.Result.Message
		}
		record.Was.Patch, record.response = response.Patch, o
	}
	return record, nil
}

// apply applies the recorded patch.
func (r *Record) apply() (err error) {
	if r.Was == nil || len(r.Was.Patch) == 0 {
		return nil
	}
	if r.Was.After, err = replay.Apply(r.Request.Object.Raw, r.Was.Patch); err != nil {
		return r.response.ErrorAt("/response/patch", "response.patch: "+err.Error())
	}
	return nil
}

// readRecorded reads a line that `serve` recorded.
func readRecorded(o *manifest.Object) (*Record, error) {
	var line struct {
		Webhook string         `json:"webhook"`
		Error   string         `json:"error"`
		Review  jsontext.Value `json:"review"`
	}
	if err := o.Decode(&line); err != nil {
		return nil, err
	}
	part := o.Part("/review", line.Review, metav1.TypeMeta{APIVersion: "admission.k8s.io/" + reviewversion.V1, Kind: "AdmissionReview"}, metav1.ObjectMeta{})
	record, err := readReview(part)
	if err != nil {
		return nil, err
	}
	record.Webhook = line.Webhook
	switch {
	case line.Error != "":
		record.Was = &Decision{Failed: line.Error}
	case record.Was != nil && record.Was.Denied:
		record.Was.By = line.Webhook
	}
	return record, nil
}

// deniedBy matches the API server's message for a denial by a webhook
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
var deniedBy = regexp.MustCompile(`(?s)^admission webhook "([^"]+)" denied the request: (.*)$`)

// readAudit reads an event from kube-apiserver's audit log.
func readAudit(o *manifest.Object) (*Record, string, error) {
	var event auditv1.Event
	if err := o.Decode(&event); err != nil {
		return nil, "", err
	}
	switch {
	case event.Stage != auditv1.StageResponseComplete:
		return nil, otherStage, nil
	case slices.Contains([]string{"get", "list", "watch"}, event.Verb):
		return nil, reading, nil
	case event.Verb != "create":
		return nil, otherVerb, nil
	case event.RequestObject == nil || event.ObjectRef == nil:
		return nil, withoutObject, nil
	}
	was := &Decision{}
	if status := event.ResponseStatus; status != nil && status.Code >= http.StatusBadRequest {
		m := deniedBy.FindStringSubmatch(status.Message)
		if m == nil {
			return nil, notByAdmission, nil
		}
		was = &Decision{Denied: true, By: m[1], Message: m[2]}
	}
	user := event.User
	if event.ImpersonatedUser != nil {
		user = *event.ImpersonatedUser
	}
	ref := event.ObjectRef
	request := &admissionv1.AdmissionRequest{
		UID: event.AuditID, Operation: admissionv1.Create, UserInfo: user,
		Resource: metav1.GroupVersionResource{Group: ref.APIGroup, Version: ref.APIVersion, Resource: ref.Resource}, SubResource: ref.Subresource,
		Name: ref.Name, Namespace: ref.Namespace, DryRun: new(isDryRun(event.RequestURI)),
		Object: runtime.RawExtension{Raw: event.RequestObject.Raw},
	}
	var object struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
	}
	if err := o.DecodePart("/requestObject", event.RequestObject.Raw, &object); err != nil {
		return nil, "", err
	}
	request.Kind = metav1.GroupVersionKind(object.GroupVersionKind())
	if request.Kind.Kind == "" {
		return nil, "", o.ErrorAt("/requestObject", "requestObject has no apiVersion and kind")
	}
	replay.Complete(request)
	if object.Metadata.Namespace == "" {
		object.Metadata.Namespace = ref.Namespace
	}
	about := o.Part("/requestObject", event.RequestObject.Raw, object.TypeMeta, object.Metadata)
	return &Record{Question: review.Question{Object: about, Review: replay.Review{Request: request}}, Was: was}, "", nil
}

func isDryRun(uri string) bool {
	_, query, _ := strings.Cut(uri, "?")
	values, err := url.ParseQuery(query)
	return err == nil && values.Get("dryRun") == "All"
}
