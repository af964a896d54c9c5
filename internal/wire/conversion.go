// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/codes"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// ConversionPath is where controller-runtime serves conversion, and therefore where
// CustomResourceDefinitions expect it.
const ConversionPath = "/convert"

// Conversion answers ConversionReviews with converters. It is an http.Handler. The
// server around it limits size, time and concurrency.
//
// One object that cannot be converted fails the whole review, because the protocol
// offers nothing else: HTTP 200 with status Failure. The API server shows the message
// to its user. The message names the object by index, kind and name and repeats none of
// its content. HTTP errors are only for reviews that cannot be answered that way: the
// body is not a review, or the caller is gone.
type Conversion struct {
	converters map[schema.GroupKind]conversion.Converter
	logger     *slog.Logger
	faults     *faultLog
	metrics    *conversionMetrics
}

// ConversionOptions configure a [Conversion].
type ConversionOptions struct {
	// Logger receives faults and failures. Default: slog.Default().
	Logger *slog.Logger
	// Metrics counts reviews and objects. Default: none.
	Metrics *Metrics
}

// NewConversion serves converters, at most one per kind. The error reports all
// problems.
func NewConversion(converters []conversion.Converter, options ConversionOptions) (*Conversion, error) {
	var errs []error
	c := &Conversion{converters: map[schema.GroupKind]conversion.Converter{}, logger: options.Logger}
	for _, converter := range converters {
		errs = append(errs, converter.Problems())
		if _, there := c.converters[converter.Kind()]; there {
			errs = append(errs, fmt.Errorf("two converters are for kind %s", converter.Kind()))
		}
		c.converters[converter.Kind()] = converter
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.faults = newFaultLog(c.logger.With("path", ConversionPath))
	c.metrics = options.Metrics.forConverters(converters)
	return c, nil
}

// Review answers the ConversionReview in body. It retains body and does not change it.
// Errors are always a [*Fault].
func (c *Conversion) Review(ctx context.Context, body []byte) ([]byte, error) {
	answer, _, err := c.review(ctx, nil, body)
	return answer, err
}

// review writes the answer into buffer if it has room. Failure describes the object
// that could not be converted.
func (c *Conversion) review(ctx context.Context, buffer, body []byte) (answer []byte, failure, err error) {
	review, err := decodeConversion(body)
	if err != nil && (review.uid == "" || !reviewversion.In(conversionGroup, review.version)) {
		return nil, nil, &Fault{Code: http.StatusBadRequest, Err: err}
	}
	if err != nil {
		return appendFailure(nil, &review, err.Error()), err, nil
	}
	if room := len(body) + len(body)/4 + 256; cap(buffer) < room {
		buffer = make([]byte, 0, room)
	}
	span := describeConversion(ctx, &review)
	answer = appendConversion(buffer[:0], &review)
	for i := range review.objects {
		if err := ctx.Err(); err != nil {
			return nil, nil, faultOf(ctx, err)
		}
		object := &review.objects[i]
		if i > 0 {
			answer = append(answer, ',')
		}
		if answer, err = c.convert(ctx, answer, object, &review); err != nil {
			failure = &objectError{i, object, err}
			c.tell(ctx, failure, err, object.Raw)
			span.SetStatus(codes.Error, "an object cannot be converted")
			return appendFailure(answer[:0], &review, failure.Error()), failure, nil
		}
	}
	return appendSuccess(answer), nil, nil
}

func (c *Conversion) convert(ctx context.Context, dst []byte, object *rawobject.Object, review *conversionReview) ([]byte, error) {
	if object.Raw[0] != '{' {
		return dst, errors.New("is not a JSON object")
	}
	if object.At.Metadata.Empty() {
		return dst, errors.New("has no metadata")
	}
	group, version := rawobject.SplitAPIVersion(object.APIVersion)
	desiredGroup, desired := rawobject.SplitAPIVersion(review.desired)
	converter, ok := c.converters[schema.GroupKind{Group: group, Kind: object.Kind}]
	switch {
	case !ok:
		return dst, fmt.Errorf("there is no converter for kind %s of group %s here: correct the conversion of its CustomResourceDefinition", brief(object.Kind), brief(group))
	case version == desired && group == desiredGroup:
		return dst, fmt.Errorf("it has the wanted version %s already: an API server converts no such object", brief(review.desired))
	case group != desiredGroup:
		return dst, fmt.Errorf("its group is %s, and the wanted version is %s", brief(group), brief(review.desired))
	}
	dst, err := converter.Append(ctx, dst, object, desired)
	c.metrics.converted(converter.Kind(), version, desired, err)
	return dst, err
}

// tell logs why an object was not converted.
func (c *Conversion) tell(ctx context.Context, failure, err error, object []byte) {
	var panicked *conversion.PanicError
	attributes := []any{"error", failure}
	if errors.As(err, &panicked) {
		attributes = append(attributes, "panic", panicText(panicked.Value, object), "stack", string(panicked.Stack))
	}
	c.faults.lasting.Do(func() { c.logger.ErrorContext(ctx, "object not converted", attributes...) })
}

// objectError says which object could not be converted.
type objectError struct {
	index  int
	object *rawobject.Object
	err    error
}

func (e *objectError) Unwrap() error { return e.err }

func (e *objectError) Error() string {
	name := e.object.Name
	if e.object.Namespace != "" {
		name = e.object.Namespace + "/" + name
	}
	kind := e.object.Kind
	if len(kind) > 63 || kind == "" { // longer than any kind
		kind = "object"
	}
	if len(name) > 2*253+1 {
		name = ""
	}
	return fmt.Sprintf("object %d, %s %q: %s", e.index, kind, name, e.err)
}

// answers pools the buffers of answers.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// maxAnswer is the size of the largest buffer that goes back to the pool.
const maxAnswer = 64 << 10

func release(buffer *[]byte, answer []byte) {
	if cap(answer) <= maxAnswer {
		*buffer = answer
		answers.Put(buffer)
	}
}

func (c *Conversion) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, fault := readBody(r)
	c.answer(r.Context(), w, body, fault)
}

// Answer answers a POST whose body the caller has already read. It retains body and
// does not change it.
func (c *Conversion) Answer(ctx context.Context, w http.ResponseWriter, header http.Header, body []byte) {
	c.answer(ctx, w, body, checkRead(header, body))
}

func (c *Conversion) answer(ctx context.Context, w http.ResponseWriter, body []byte, fault *Fault) {
	if fault == nil {
		buffer := answers.Get().(*[]byte)
		answer, failure, err := c.review(ctx, *buffer, body)
		if err == nil {
			defer release(buffer, answer)
			c.metrics.answered(failure)
			header := w.Header()
			header["Content-Type"] = jsonContentType
			header["Content-Length"] = []string{strconv.Itoa(len(answer))}
			_, _ = w.Write(answer) // an error means that the client is gone
			return
		}
		if !errors.As(err, &fault) {
			fault = &Fault{Code: http.StatusInternalServerError, Err: err}
		}
	}
	c.metrics.failed(fault.Code)
	c.faults.log(ctx, fault)
	fault.write(w, "conversion")
}
