// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// maxDepth limits how deep a review may be nested. Kubernetes' own types need less than
// 64 levels. Custom resources may need more.
const maxDepth = 256

const (
	admissionGroup = "admission.k8s.io"
	admissionV1    = admissionGroup + "/" + reviewversion.V1
)

// decodeReview reads the envelope of an AdmissionReview in one pass. It checks the
// whole body (syntax, UTF-8, duplicate names, depth) and leaves the objects as raw
// bytes. Both versions have the same fields. As in Kubernetes' own decoders, null means
// unset, names are case-sensitive and unknown fields are ignored.
func decodeReview(body []byte) (version string, req *admissionv1.AdmissionRequest, err error) {
	var kind string
	err = rawjson.Check(body, maxDepth, func(r *rawjson.Reader) {
		d := decoder{r}
		d.fields("the review", func(field []byte) {
			switch string(field) {
			case "apiVersion":
				d.string("apiVersion", &version)
			case "kind":
				d.string("kind", &kind)
			case "request":
				if d.Kind() != 'n' {
					req = &admissionv1.AdmissionRequest{}
					d.request(req)
				}
			}
		})
	})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("the body is not an AdmissionReview: %w", err)
	case kind != "AdmissionReview":
		return "", nil, fmt.Errorf("the body is of kind %s; send an AdmissionReview", brief(kind))
	case !reviewversion.In(admissionGroup, version):
		return "", nil, fmt.Errorf("AdmissionReview of version %s; send %s", brief(version), reviewversion.Choices(admissionGroup))
	case req == nil:
		return "", nil, errors.New("the AdmissionReview has no request")
	case req.UID == "":
		return "", nil, errors.New("the AdmissionReview's request has no uid")
	}
	return version, req, nil
}

// brief quotes a word from the caller for a message, unless it is longer than such
// words can be.
func brief(word string) string {
	if len(word) > 64 {
		return fmt.Sprintf("(%d bytes)", len(word))
	}
	return strconv.Quote(word)
}

// A decoder reads the fields of the envelope.
type decoder struct{ *rawjson.Reader }

func (d decoder) request(req *admissionv1.AdmissionRequest) {
	d.fields("request", func(field []byte) {
		switch string(field) {
		case "uid":
			d.string("request.uid", (*string)(&req.UID))
		case "kind":
			d.kind("request.kind", &req.Kind)
		case "resource":
			d.resource("request.resource", &req.Resource)
		case "subResource":
			d.string("request.subResource", &req.SubResource)
		case "requestKind":
			if d.Kind() != 'n' {
				req.RequestKind = &metav1.GroupVersionKind{}
				d.kind("request.requestKind", req.RequestKind)
			}
		case "requestResource":
			if d.Kind() != 'n' {
				req.RequestResource = &metav1.GroupVersionResource{}
				d.resource("request.requestResource", req.RequestResource)
			}
		case "requestSubResource":
			d.string("request.requestSubResource", &req.RequestSubResource)
		case "name":
			d.string("request.name", &req.Name)
		case "namespace":
			d.string("request.namespace", &req.Namespace)
		case "operation":
			d.string("request.operation", (*string)(&req.Operation))
		case "userInfo":
			d.userInfo(&req.UserInfo)
		case "object":
			d.raw(&req.Object.Raw)
		case "oldObject":
			d.raw(&req.OldObject.Raw)
		case "options":
			d.raw(&req.Options.Raw)
		case "dryRun":
			d.boolean("request.dryRun", &req.DryRun)
		}
	})
}

func (d decoder) kind(path string, kind *metav1.GroupVersionKind) {
	d.groupVersion(path, "kind", &kind.Group, &kind.Version, &kind.Kind)
}

func (d decoder) resource(path string, resource *metav1.GroupVersionResource) {
	d.groupVersion(path, "resource", &resource.Group, &resource.Version, &resource.Resource)
}

func (d decoder) groupVersion(path, last string, group, version, kind *string) {
	d.fields(path, func(field []byte) {
		to := kind
		switch string(field) {
		case "group":
			to = group
		case "version":
			to = version
		case last:
		default:
			return
		}
		if kind := d.Kind(); kind != '"' && kind != 'n' {
			d.Expected("a string for " + path + "." + string(field))
			return
		}
		d.string(path, to)
	})
}

func (d decoder) userInfo(user *authenticationv1.UserInfo) {
	d.fields("request.userInfo", func(field []byte) {
		switch string(field) {
		case "username":
			d.string("request.userInfo.username", &user.Username)
		case "uid":
			d.string("request.userInfo.uid", &user.UID)
		case "groups":
			d.strings("request.userInfo.groups", &user.Groups)
		case "extra":
			d.fields("request.userInfo.extra", func(key []byte) {
				name, values := string(key), []string(nil)
				d.strings("request.userInfo.extra", &values)
				if user.Extra == nil {
					user.Extra = map[string]authenticationv1.ExtraValue{}
				}
				user.Extra[name] = values
			})
		}
	})
}

// fields reads the object at path field by field.
func (d decoder) fields(path string, field func(name []byte)) {
	switch d.Kind() {
	case '{':
		d.Object(field)
	case 'n':
		d.Skip()
	default:
		d.Expected("an object for " + path)
	}
}

func (d decoder) strings(path string, to *[]string) {
	switch d.Kind() {
	case '[':
		d.Array(func(int) {
			if *to == nil {
				*to = make([]string, 0, 4)
			}
			var text string
			d.string(path, &text)
			*to = append(*to, text)
		})
	case 'n':
		d.Skip()
	default:
		d.Expected("a list for " + path)
	}
}

func (d decoder) string(path string, to *string) {
	switch d.Kind() {
	case '"':
		text, _ := d.String()
		*to = intern(text)
	case 'n':
		d.Skip()
	default:
		d.Expected("a string for " + path)
	}
}

// intern avoids an allocation for words that most envelopes contain.
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

func (d decoder) boolean(path string, to **bool) {
	switch kind := d.Kind(); kind {
	case 't', 'f':
		value := kind == 't'
		*to = &value
		d.Skip()
	case 'n':
		d.Skip()
	default:
		d.Expected("true or false for " + path)
	}
}

// raw aliases a value in the body.
func (d decoder) raw(to *[]byte) {
	if value := d.Value(); string(value) != "null" {
		*to = value
	}
}
