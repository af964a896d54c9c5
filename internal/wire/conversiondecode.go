// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sallyport-io/sallyport/internal/rawobject"
)

// The versions of ConversionReview that are spoken.
const (
	conversionV1      = "apiextensions.k8s.io/v1"
	conversionV1beta1 = "apiextensions.k8s.io/v1beta1"
)

// maxObjects bounds what is remembered of the objects of a review: a body may hold
// millions of empty ones. The API server sends one, or what a page of a list has.
const maxObjects = 100_000

func spoken(version string) bool { return version == conversionV1 || version == conversionV1beta1 }

// conversionReview is what is read of a ConversionReview.
type conversionReview struct {
	version string
	uid     string
	desired string
	objects []rawobject.Object
}

// decodeConversion reads a ConversionReview in one pass, as [decodeReview] does an
// AdmissionReview: all of it is checked, the objects stay the bytes that came, and of
// each it is noted where its parts are. If there is an error, the review holds what
// was read until then.
func decodeConversion(body []byte) (review conversionReview, err error) {
	d := decoders.Get().(*conversionDecoder)
	d.data = body
	defer d.release()
	var kind string
	requested := false
	end, err := d.fields(0, "the review", func(field []byte, i int) (int, error) {
		switch string(field) {
		case "apiVersion":
			return d.string(i, "apiVersion", &review.version)
		case "kind":
			return d.string(i, "kind", &kind)
		case "request":
			requested = !d.isNull(i)
			return d.fields(i, "request", func(field []byte, i int) (int, error) {
				switch string(field) {
				case "uid":
					return d.string(i, "request.uid", &review.uid)
				case "desiredAPIVersion":
					return d.string(i, "request.desiredAPIVersion", &review.desired)
				case "objects":
					return d.objects(i, &review.objects)
				default:
					return d.skip(i)
				}
			})
		default:
			return d.skip(i)
		}
	})
	if err == nil {
		err = d.end(end)
	}
	switch {
	case err != nil && kind != "" && kind != "ConversionReview":
		review.uid = "" // it is none to answer
		return review, fmt.Errorf("the body is of kind %s; send a ConversionReview", brief(kind))
	case err != nil:
		return review, fmt.Errorf("the body is no ConversionReview: %w", err)
	case kind != "ConversionReview":
		review.uid = ""
		return review, fmt.Errorf("the body is of kind %s; send a ConversionReview", brief(kind))
	case !spoken(review.version):
		return review, fmt.Errorf("ConversionReview of version %s; send %s or %s", brief(review.version), conversionV1, conversionV1beta1)
	case !requested:
		return review, errors.New("the ConversionReview has no request")
	case review.uid == "":
		return review, errors.New("the ConversionReview's request has no uid")
	case review.desired == "":
		return review, errors.New("the ConversionReview's request has no desiredAPIVersion")
	}
	return review, nil
}

// A conversionDecoder reads the objects of a ConversionReview.
type conversionDecoder struct {
	decoder
	in *rawobject.Object // that is being read
	at int               // where it begins

	// The methods of the same names, made into functions once.
	onMember, onMetadata func(name []byte, i int) (int, error)
}

// decoders are used again: a review of one small object, which is what the API server
// sends, costs little more than their memory.
var decoders = sync.Pool{New: func() any {
	d := &conversionDecoder{decoder: decoder{newScanner(nil)}}
	d.onMember, d.onMetadata = d.member, d.metadata
	return d
}}

// release gives the decoder back, without what it has read.
func (d *conversionDecoder) release() {
	if cap(d.names) > 4096 || cap(d.unquoted) > 4096 {
		return
	}
	d.scanner = scanner{names: d.names[:0], unquoted: d.unquoted[:0]}
	d.in = nil
	decoders.Put(d)
}

func (d *conversionDecoder) objects(i int, to *[]rawobject.Object) (int, error) {
	switch c, i := d.peek(i); c {
	case '[':
		return d.array(i, func(i int) (int, error) {
			if len(*to) >= maxObjects {
				return fail(i, fmt.Sprintf("more than %d objects", maxObjects))
			}
			if *to == nil {
				*to = make([]rawobject.Object, 0, 1)
			}
			*to = append(*to, rawobject.Object{})
			return d.one(i, &(*to)[len(*to)-1])
		})
	case 'n':
		return d.skip(i)
	default:
		return d.unexpected(i, "a list for request.objects")
	}
}

// one reads an object. What is no object, or is odd in what every object has, is read
// all the same: it is that object's failure.
func (d *conversionDecoder) one(i int, in *rawobject.Object) (int, error) {
	c, start := d.peek(i)
	var end int
	var err error
	if c == '{' {
		d.in, d.at = in, start
		end, err = d.object(start, d.onMember)
	} else {
		end, err = d.skip(start)
	}
	if err == nil {
		in.Raw = d.data[start:end:end]
	}
	return end, err
}

func (d *conversionDecoder) member(name []byte, i int) (int, error) {
	switch string(name) {
	case "apiVersion":
		return d.word(i, &d.in.APIVersion, &d.in.At.APIVersion)
	case "kind":
		return d.word(i, &d.in.Kind, nil)
	case "metadata":
		c, start := d.peek(i)
		if c != '{' {
			return d.skip(start)
		}
		end, err := d.object(start, d.onMetadata)
		d.in.At.Metadata = rawobject.Span{Start: start - d.at, End: end - d.at}
		return end, err
	}
	return d.skip(i)
}

func (d *conversionDecoder) metadata(name []byte, i int) (int, error) {
	switch string(name) {
	case "name":
		return d.word(i, &d.in.Name, nil)
	case "namespace":
		return d.word(i, &d.in.Namespace, nil)
	case "uid":
		return d.word(i, &d.in.UID, nil)
	case "labels":
		return d.part(i, &d.in.At.Labels, &d.in.Nulls.Labels)
	case "annotations":
		return d.part(i, &d.in.At.Annotations, &d.in.Nulls.Annotations)
	case "managedFields":
		return d.part(i, &d.in.At.ManagedFields, nil)
	}
	return d.skip(i)
}

// part notes where a value stands: in null if it is null and that is asked for.
func (d *conversionDecoder) part(i int, to, null *rawobject.Span) (int, error) {
	c, start := d.peek(i)
	end, err := d.skip(start)
	if c == 'n' {
		to = null
	}
	if to != nil {
		*to = rawobject.Span{Start: start - d.at, End: end - d.at}
	}
	return end, err
}

// word reads a string; what is none stays unset.
func (d *conversionDecoder) word(i int, to *string, at *rawobject.Span) (int, error) {
	c, start := d.peek(i)
	if c != '"' {
		return d.skip(start)
	}
	end, err := d.string(start, "", to)
	if at != nil {
		*at = rawobject.Span{Start: start - d.at, End: end - d.at}
	}
	return end, err
}
