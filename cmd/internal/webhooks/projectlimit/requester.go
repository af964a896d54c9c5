// SPDX-License-Identifier: Apache-2.0

package projectlimit

import "github.com/sallyport-io/sallyport/internal/json/rawjson"

// Annotations that name the requester of a namespace.
const (
	// Annotation is set by this webhook.
	Annotation = "sallyport.io/requester"
	// OpenShiftAnnotation is set by OpenShift's API server when it turns a
	// ProjectRequest into a project. It takes precedence, and this webhook never sets
	// it.
	OpenShiftAnnotation = "openshift.io/requester"
)

// Requester returns the requester of a namespace with these annotations, or "".
func Requester(annotations map[string]string) string {
	if requester := annotations[OpenShiftAnnotation]; requester != "" {
		return requester
	}
	return annotations[Annotation]
}

// header is the relevant part of a namespace or project request.
type header struct {
	name, generateName string
	stamp, openShift   string
}

// requester is [Requester].
func (h *header) requester() string {
	if h.openShift != "" {
		return h.openShift
	}
	return h.stamp
}

// title names it in messages, as far as it has a name yet.
func (h *header) title() string {
	switch {
	case h.name != "":
		return h.name
	case h.generateName != "":
		return h.generateName
	}
	return "(without a name)"
}

// readHeader reads the metadata. It returns false if the object, its metadata or
// annotations are malformed.
func readHeader(raw []byte) (h header, ok bool) {
	r := rawjson.NewReader(raw)
	valid := true
	text := func(into *string) {
		value, isString := r.String()
		*into, valid = string(value), valid && isString
	}
	ok = r.Object(func(field []byte) {
		if string(field) != "metadata" || r.Kind() == 'n' {
			return
		}
		valid = r.Object(func(field []byte) {
			if r.Kind() == 'n' {
				return
			}
			switch string(field) {
			case "name":
				text(&h.name)
			case "generateName":
				text(&h.generateName)
			case "annotations":
				valid = r.Object(func(key []byte) {
					switch string(key) {
					case Annotation:
						text(&h.stamp)
					case OpenShiftAnnotation:
						text(&h.openShift)
					}
				}) && valid
			}
		}) && valid
	})
	return h, ok && valid
}
