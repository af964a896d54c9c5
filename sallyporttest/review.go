// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// Review is a request of the API server: recorded ([FromFile], [Recorded]) or built from
// objects ([Create], [Update], [Delete], [Connect]). [Run] reports its problems.
type Review struct {
	body            []byte // an AdmissionReview, JSON
	namespaceLabels map[string]string
	err             error
}

// FromFile reads a recorded AdmissionReview, JSON or YAML, of version v1 or v1beta1.
func FromFile(path string) Review {
	body, err := os.ReadFile(path)
	if err != nil {
		return Review{err: err}
	}
	if !json.Valid(body) {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return Review{err: fmt.Errorf("%s: %w", path, err)}
		}
	}
	return Recorded(body)
}

// Recorded is a recorded AdmissionReview, JSON, of version v1 or v1beta1.
func Recorded(body []byte) Review { return Review{body: body} }

// Create is a request to create an object.
func Create(object runtime.Object, options ...ReviewOption) Review {
	return build(admissionv1.Create, object, nil, options)
}

// Update is a request to update old to object.
func Update(old, object runtime.Object, options ...ReviewOption) Review {
	return build(admissionv1.Update, object, old, options)
}

// Delete is a request to delete old.
func Delete(old runtime.Object, options ...ReviewOption) Review {
	return build(admissionv1.Delete, nil, old, options)
}

// Connect is a request to connect to a sub-resource such as pods/attach. The object of the
// request is its options, for example *corev1.PodAttachOptions. Set resource and object
// with [ForResource], [ForSubresource] and [Named].
func Connect(connectOptions runtime.Object, options ...ReviewOption) Review {
	return build(admissionv1.Connect, connectOptions, nil, options)
}

// ReviewOption modifies a review that is built from objects.
type ReviewOption func(*builder)

type builder struct {
	request *admissionv1.AdmissionRequest
	scheme  *runtime.Scheme
	version string
	labels  map[string]string
	changes []func(*admissionv1.AdmissionRequest)
}

// InScheme sets the scheme to look up the kind of the objects. Default client-go's scheme.
// It is not needed for objects that have a kind.
func InScheme(scheme *runtime.Scheme) ReviewOption { return func(b *builder) { b.scheme = scheme } }

// ForResource sets the resource. By default it is guessed from the kind.
func ForResource(resource schema.GroupVersionResource) ReviewOption {
	return func(b *builder) {
		b.request.Resource = metav1.GroupVersionResource(resource)
	}
}

// ForSubresource sets the sub-resource, for example "status". If its kind differs from that
// of the resource ("scale"), [ForResource] is needed too.
func ForSubresource(name string) ReviewOption {
	return func(b *builder) { b.request.SubResource = name }
}

// Named sets namespace and name of the request. By default they are those of the object.
func Named(namespace, name string) ReviewOption {
	return func(b *builder) { b.request.Namespace, b.request.Name = namespace, name }
}

// AsUser sets the user of the request. Default "kubernetes-admin".
func AsUser(name string, groups ...string) ReviewOption {
	return func(b *builder) { b.request.UserInfo = authenticationv1.UserInfo{Username: name, Groups: groups} }
}

// NamespaceLabels sets the labels of the object's namespace, for a namespaceSelector. It
// always has kubernetes.io/metadata.name.
func NamespaceLabels(labels map[string]string) ReviewOption {
	return func(b *builder) { b.labels = labels }
}

// DryRun makes it a dry-run request.
func DryRun() ReviewOption { return func(b *builder) { b.request.DryRun = new(true) } }

// InVersion sets the version of the AdmissionReview, "v1" or "v1beta1". Default v1.
func InVersion(version string) ReviewOption { return func(b *builder) { b.version = version } }

// With modifies the request after everything else is set.
func With(change func(*admissionv1.AdmissionRequest)) ReviewOption {
	return func(b *builder) { b.changes = append(b.changes, change) }
}

// uid is constant for all built reviews, to keep tests deterministic.
const uid = "5a117907-0000-4000-8000-000000000001"

func build(operation admissionv1.Operation, object, old runtime.Object, options []ReviewOption) Review {
	subject := object
	if subject == nil {
		subject = old
	}
	if subject == nil || operation == admissionv1.Update && old == nil {
		return Review{err: errors.New("an object is missing")}
	}
	b := builder{scheme: scheme.Scheme, version: reviewversion.V1, request: &admissionv1.AdmissionRequest{
		UID: uid, Operation: operation, DryRun: new(false),
		UserInfo: authenticationv1.UserInfo{Username: "kubernetes-admin", Groups: []string{"system:masters", "system:authenticated"}},
	}}
	for _, option := range options {
		option(&b)
	}
	gvk, err := kindOf(b.scheme, subject)
	if err != nil {
		return Review{err: err}
	}
	r := b.request
	r.Kind = metav1.GroupVersionKind(gvk)
	if accessor, err := meta.Accessor(subject); err == nil && r.Name == "" && r.Namespace == "" {
		r.Name, r.Namespace = accessor.GetName(), accessor.GetNamespace()
	}
	if r.Object.Raw, err = encode(object, gvk); err != nil {
		return Review{err: err}
	}
	if r.OldObject.Raw, err = encode(old, gvk); err != nil {
		return Review{err: err}
	}
	replay.Complete(r)
	for _, change := range b.changes {
		change(r)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/" + b.version, Kind: "AdmissionReview"}, Request: r,
	})
	return Review{body: body, namespaceLabels: b.labels, err: err}
}

func kindOf(scheme *runtime.Scheme, object runtime.Object) (schema.GroupVersionKind, error) {
	if gvk := object.GetObjectKind().GroupVersionKind(); gvk.Kind != "" && gvk.Version != "" {
		return gvk, nil
	}
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the kind of a %T is not known (%w): set its apiVersion and kind, or say InScheme", object, err)
	}
	return kinds[0], nil
}

// encode returns the object as the API server sends it, with its kind.
func encode(object runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return json.Marshal(object)
}

// open decodes the envelope.
func (r Review) open() (*admissionv1.AdmissionReview, error) {
	if r.err != nil {
		return nil, r.err
	}
	envelope := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(r.body, envelope); err != nil {
		return nil, err
	}
	if envelope.Request == nil {
		return nil, errors.New("it has no request")
	}
	return envelope, nil
}

// about returns the same request for another object.
func about(envelope *admissionv1.AdmissionReview, object []byte) ([]byte, error) {
	changed := *envelope
	request := *envelope.Request
	request.Object = runtime.RawExtension{Raw: object}
	changed.Request = &request
	return json.Marshal(changed)
}
