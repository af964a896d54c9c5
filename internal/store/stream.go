// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/internal/json/listed"
)

// A streamed list is read while it arrives: see [eachPage].
type streamed struct {
	metav1.TypeMeta
	each func(visit func(runtime.Object) error) (metav1.ListMeta, error)
}

// DeepCopyObject implements [runtime.Object].
func (s *streamed) DeepCopyObject() runtime.Object { return s }

// stream sends a list request, and returns a list that can be read once. An object must not share memory with what
// decode gets.
func stream(ctx context.Context, request *rest.Request, resource string, decode func(raw []byte, protobuf bool) (runtime.Object, error)) (runtime.Object, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &streamed{each: func(visit func(runtime.Object) error) (metav1.ListMeta, error) {
		defer func() { _ = body.Close() }() // it was read
		about, err := listed.Each(body, func(raw []byte, protobuf bool) error {
			object, err := decode(raw, protobuf)
			if err != nil {
				return err
			}
			return visit(object)
		})
		if err != nil {
			err = fmt.Errorf("reading the list of %s: %w", resource, withoutContent(err))
		}
		return about, err
	}}, nil
}

// withoutContent describes what is wrong with a list, and repeats none of it.
func withoutContent(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the response ended early")
	}
	if syntax := new(jsontext.SyntacticError); errors.As(err, &syntax) {
		where, offset, problem := decode.Describe(syntax)
		return fmt.Errorf("%s, at byte %d: %s", where, offset, problem)
	}
	return err
}
