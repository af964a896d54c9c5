// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxDepth limits how deep a review may be nested. Kubernetes' own types need
// less than 64 levels; a custom resource may hold more.
const maxDepth = 256

// The versions of AdmissionReview that are spoken.
const (
	admissionV1      = "admission.k8s.io/v1"
	admissionV1beta1 = "admission.k8s.io/v1beta1"
)

// decodeReview reads the envelope of an AdmissionReview in one pass, checks the
// whole of it (syntax, UTF-8, duplicate names, depth) and leaves the objects as
// the bytes that came. The two versions have the same fields. As in Kubernetes'
// own decoders, null is what is not set, names are case-sensitive, and fields that
// are not known are passed over.
func decodeReview(body []byte) (version string, req *admissionv1.AdmissionRequest, err error) {
	d := decoder{newScanner(body)}
	var kind string
	end, err := d.fields(0, "the review", func(field []byte, i int) (int, error) {
		switch string(field) {
		case "apiVersion":
			return d.string(i, "apiVersion", &version)
		case "kind":
			return d.string(i, "kind", &kind)
		case "request":
			if d.isNull(i) {
				return d.skip(i)
			}
			req = &admissionv1.AdmissionRequest{}
			return d.request(i, req)
		default:
			return d.skip(i)
		}
	})
	if err == nil {
		err = d.end(end)
	}
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("the body is no AdmissionReview: %w", err)
	case kind != "AdmissionReview":
		return "", nil, fmt.Errorf("the body is of kind %s; send an AdmissionReview", brief(kind))
	case version != admissionV1 && version != admissionV1beta1:
		return "", nil, fmt.Errorf("AdmissionReview of version %s; send %s or %s", brief(version), admissionV1, admissionV1beta1)
	case req == nil:
		return "", nil, errors.New("the AdmissionReview has no request")
	case req.UID == "":
		return "", nil, errors.New("the AdmissionReview's request has no uid")
	}
	return version, req, nil
}

// brief quotes a word of the caller for a message, if it is no longer than such
// words are.
func brief(word string) string {
	if len(word) > 64 {
		return fmt.Sprintf("(%d bytes)", len(word))
	}
	return strconv.Quote(word)
}

// A decoder reads the fields of the envelope.
type decoder struct{ scanner }

func (d *decoder) request(i int, req *admissionv1.AdmissionRequest) (int, error) {
	return d.fields(i, "request", func(field []byte, i int) (int, error) {
		switch string(field) {
		case "uid":
			return d.string(i, "request.uid", (*string)(&req.UID))
		case "kind":
			return d.kind(i, "request.kind", &req.Kind)
		case "resource":
			return d.resource(i, "request.resource", &req.Resource)
		case "subResource":
			return d.string(i, "request.subResource", &req.SubResource)
		case "requestKind":
			if d.isNull(i) {
				return d.skip(i)
			}
			req.RequestKind = &metav1.GroupVersionKind{}
			return d.kind(i, "request.requestKind", req.RequestKind)
		case "requestResource":
			if d.isNull(i) {
				return d.skip(i)
			}
			req.RequestResource = &metav1.GroupVersionResource{}
			return d.resource(i, "request.requestResource", req.RequestResource)
		case "requestSubResource":
			return d.string(i, "request.requestSubResource", &req.RequestSubResource)
		case "name":
			return d.string(i, "request.name", &req.Name)
		case "namespace":
			return d.string(i, "request.namespace", &req.Namespace)
		case "operation":
			return d.string(i, "request.operation", (*string)(&req.Operation))
		case "userInfo":
			return d.userInfo(i, &req.UserInfo)
		case "object":
			return d.raw(i, &req.Object.Raw)
		case "oldObject":
			return d.raw(i, &req.OldObject.Raw)
		case "options":
			return d.raw(i, &req.Options.Raw)
		case "dryRun":
			return d.boolean(i, "request.dryRun", &req.DryRun)
		default:
			return d.skip(i)
		}
	})
}

func (d *decoder) kind(i int, path string, kind *metav1.GroupVersionKind) (int, error) {
	return d.groupVersion(i, path, "kind", &kind.Group, &kind.Version, &kind.Kind)
}

func (d *decoder) resource(i int, path string, resource *metav1.GroupVersionResource) (int, error) {
	return d.groupVersion(i, path, "resource", &resource.Group, &resource.Version, &resource.Resource)
}

func (d *decoder) groupVersion(i int, path, last string, group, version, kind *string) (int, error) {
	return d.fields(i, path, func(field []byte, i int) (int, error) {
		to := kind
		switch string(field) {
		case "group":
			to = group
		case "version":
			to = version
		case last:
		default:
			return d.skip(i)
		}
		if c, i := d.peek(i); c != '"' && c != 'n' {
			return d.unexpected(i, "a string for "+path+"."+string(field))
		}
		return d.string(i, path, to)
	})
}

func (d *decoder) userInfo(i int, user *authenticationv1.UserInfo) (int, error) {
	return d.fields(i, "request.userInfo", func(field []byte, i int) (int, error) {
		switch string(field) {
		case "username":
			return d.string(i, "request.userInfo.username", &user.Username)
		case "uid":
			return d.string(i, "request.userInfo.uid", &user.UID)
		case "groups":
			return d.strings(i, "request.userInfo.groups", &user.Groups)
		case "extra":
			return d.fields(i, "request.userInfo.extra", func(key []byte, i int) (int, error) {
				var values []string
				i, err := d.strings(i, "request.userInfo.extra", &values)
				if user.Extra == nil {
					user.Extra = map[string]authenticationv1.ExtraValue{}
				}
				user.Extra[string(key)] = values
				return i, err
			})
		default:
			return d.skip(i)
		}
	})
}

func (d *decoder) isNull(i int) bool {
	c, _ := d.peek(i)
	return c == 'n'
}

// fields reads the object at path field by field.
func (d *decoder) fields(i int, path string, field func(name []byte, i int) (int, error)) (int, error) {
	switch c, i := d.peek(i); c {
	case '{':
		return d.object(i, field)
	case 'n':
		return d.skip(i)
	default:
		return d.unexpected(i, "an object for "+path)
	}
}

func (d *decoder) strings(i int, path string, to *[]string) (int, error) {
	switch c, i := d.peek(i); c {
	case '[':
		return d.array(i, func(i int) (int, error) {
			var text string
			i, err := d.string(i, path, &text)
			if *to == nil {
				*to = make([]string, 0, 4)
			}
			*to = append(*to, text)
			return i, err
		})
	case 'n':
		return d.skip(i)
	default:
		return d.unexpected(i, "a list for "+path)
	}
}

func (d *decoder) string(i int, path string, to *string) (int, error) {
	switch c, i := d.peek(i); c {
	case '"':
		end, escaped, err := d.text(i)
		switch {
		case err != nil:
		case escaped:
			var text []byte
			text, err = jsontext.AppendUnquote(nil, d.data[i:end])
			*to = string(text)
		default:
			*to = intern(d.data[i+1 : end-1])
		}
		return end, err
	case 'n':
		return d.skip(i)
	default:
		return d.unexpected(i, "a string for "+path)
	}
}

// intern spares an allocation for the words that most envelopes have.
func intern(text []byte) string {
	switch string(text) {
	case "":
		return ""
	case "v1":
		return "v1"
	case "Pod":
		return "Pod"
	case "pods":
		return "pods"
	case "CREATE":
		return "CREATE"
	case "UPDATE":
		return "UPDATE"
	case "AdmissionReview":
		return "AdmissionReview"
	case admissionV1:
		return admissionV1
	case "system:authenticated":
		return "system:authenticated"
	case "system:serviceaccounts":
		return "system:serviceaccounts"
	}
	return string(text)
}

func (d *decoder) boolean(i int, path string, to **bool) (int, error) {
	switch c, i := d.peek(i); c {
	case 't', 'f':
		value := c == 't'
		*to = &value
		return d.skip(i)
	case 'n':
		return d.skip(i)
	default:
		return d.unexpected(i, "true or false for "+path)
	}
}

// raw takes a value as the bytes of the body.
func (d *decoder) raw(i int, to *[]byte) (int, error) {
	i, value, err := d.value(i)
	if err == nil && string(value) != "null" {
		*to = value
	}
	return i, err
}
