// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

const conversionGroup = "apiextensions.k8s.io"

// maxObjects bounds the bookkeeping for the objects of a review, because a body may
// hold millions of empty ones. The API server sends one object, or one page of a list.
const maxObjects = 100_000

// conversionReview holds the decoded fields of a ConversionReview.
type conversionReview struct {
	version string
	uid     string
	desired string
	objects []rawobject.Object
}

// decodeConversion reads a ConversionReview in one pass, as [decodeReview] does an
// AdmissionReview. It checks the whole body, leaves the objects as raw bytes and
// records where the parts of each object are. On error, the review holds what was read
// so far.
func decodeConversion(body []byte) (review conversionReview, err error) {
	var kind string
	requested := false
	err = rawjson.Check(body, maxDepth, func(r *rawjson.Reader) {
		d := decoder{r}
		d.fields("the review", func(field []byte) {
			switch string(field) {
			case "apiVersion":
				d.string("apiVersion", &review.version)
			case "kind":
				d.string("kind", &kind)
			case "request":
				requested = d.Kind() != 'n'
				d.fields("request", func(field []byte) {
					switch string(field) {
					case "uid":
						d.string("request.uid", &review.uid)
					case "desiredAPIVersion":
						d.string("request.desiredAPIVersion", &review.desired)
					case "objects":
						d.objects(&review.objects)
					}
				})
			}
		})
	})
	switch {
	case err != nil && kind != "" && kind != "ConversionReview":
		review.uid = "" // nothing to answer
		return review, fmt.Errorf("the body is of kind %s; send a ConversionReview", brief(kind))
	case err != nil:
		return review, fmt.Errorf("the body is not a ConversionReview: %w", err)
	case kind != "ConversionReview":
		review.uid = ""
		return review, fmt.Errorf("the body is of kind %s; send a ConversionReview", brief(kind))
	case !reviewversion.In(conversionGroup, review.version):
		return review, fmt.Errorf("ConversionReview of version %s; send %s", brief(review.version), reviewversion.Choices(conversionGroup))
	case !requested:
		return review, errors.New("the ConversionReview has no request")
	case review.uid == "":
		return review, errors.New("the ConversionReview's request has no uid")
	case review.desired == "":
		return review, errors.New("the ConversionReview's request has no desiredAPIVersion")
	}
	return review, nil
}

func (d decoder) objects(to *[]rawobject.Object) {
	switch d.Kind() {
	case '[':
		d.Array(func(i int) {
			if i >= maxObjects {
				d.Fail(fmt.Sprintf("more than %d objects", maxObjects))
				return
			}
			if *to == nil {
				*to = make([]rawobject.Object, 0, 1)
			}
			*to = append(*to, rawobject.Object{})
			d.one(&(*to)[i])
		})
	case 'n':
		d.Skip()
	default:
		d.Expected("a list for request.objects")
	}
}

// one reads an object. A value that is not an object, or has malformed metadata, is
// still recorded: it fails only that object.
func (d decoder) one(in *rawobject.Object) {
	start := d.Offset()
	d.Object(func(name []byte) {
		switch string(name) {
		case "apiVersion":
			at := d.Offset()
			if d.word(&in.APIVersion) {
				in.At.APIVersion = d.span(start, at)
			}
		case "kind":
			d.word(&in.Kind)
		case "metadata":
			at := d.Offset()
			if d.Object(func(name []byte) { d.metadata(name, in, start) }) {
				in.At.Metadata = d.span(start, at)
			}
		}
	})
	in.Raw = d.Since(start)
}

func (d decoder) metadata(name []byte, in *rawobject.Object, start int) {
	switch string(name) {
	case "name":
		d.word(&in.Name)
	case "namespace":
		d.word(&in.Namespace)
	case "uid":
		d.word(&in.UID)
	case "labels":
		d.part(start, &in.At.Labels, &in.Nulls.Labels)
	case "annotations":
		d.part(start, &in.At.Annotations, &in.Nulls.Annotations)
	case "managedFields":
		d.part(start, &in.At.ManagedFields, nil)
	}
}

// part records the span of a value, relative to the start of its object: in to, or in
// null if the value is null.
func (d decoder) part(start int, to, null *rawobject.Span) {
	at, kind := d.Offset(), d.Kind()
	d.Skip()
	if kind == 'n' {
		to = null
	}
	if to != nil {
		*to = d.span(start, at)
	}
}

// span returns the span of the value read since the offset at.
func (d decoder) span(start, at int) rawobject.Span {
	return rawobject.Span{Start: at - start, End: at - start + len(d.Since(at))}
}

// word reads a string. Any other value leaves it unset.
func (d decoder) word(to *string) bool {
	text, ok := d.String()
	if ok {
		*to = intern(text)
	}
	return ok
}
