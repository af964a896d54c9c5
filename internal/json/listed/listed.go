// SPDX-License-Identifier: Apache-2.0

// Package listed reads a list of the API server object by object, in JSON or Protobuf.
package listed

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protobufPrefix is what an object in Protobuf begins with. A runtime.Unknown follows.
const protobufPrefix = "k8s\x00"

// Fields of messages, from the generated.proto of their packages.
const (
	fieldRaw      protowire.Number = 2 // of runtime.Unknown
	fieldListMeta protowire.Number = 1 // of any list
	fieldItems    protowire.Number = 2
)

// Each reads a list in JSON, or in the API server's Protobuf, and visits its objects in order while they arrive,
// so that no list is ever whole in memory. Raw is one as it was sent, and valid during the visit. It returns what the
// list says about itself, and the first error of a visit.
//
// The API server answers a list without a limit from its cache, object by object too. One in pages of 1,000 takes it
// three to six times as much processor time: see docs/scaling.md.
func Each(body io.Reader, visit func(raw []byte, protobuf bool) error) (metav1.ListMeta, error) {
	r := bufio.NewReaderSize(body, 64<<10)
	if prefix, _ := r.Peek(len(protobufPrefix)); string(prefix) != protobufPrefix {
		return eachInJSON(r, visit)
	}
	_, _ = r.Discard(len(protobufPrefix)) // it was read
	return eachInProtobuf(r, visit)
}

func eachInJSON(r io.Reader, visit func(raw []byte, protobuf bool) error) (about metav1.ListMeta, err error) {
	list := jsontext.NewDecoder(r)
	if kind := list.PeekKind(); kind != '{' {
		if _, err := list.ReadToken(); err != nil {
			return about, unexpected(err)
		}
		return about, fmt.Errorf("expected a list, found %s", kind)
	}
	_, _ = list.ReadToken() // it was looked at
	for list.PeekKind() == '"' {
		name, err := list.ReadToken()
		if err != nil {
			return about, unexpected(err)
		}
		switch field := name.String(); {
		case field == "items" && list.PeekKind() == '[':
			_, _ = list.ReadToken() // it was looked at
			for list.PeekKind() != ']' {
				raw, err := list.ReadValue()
				if err != nil {
					return about, unexpected(err)
				}
				if err := visit(raw, false); err != nil {
					return about, err
				}
			}
			_, _ = list.ReadToken() // it was looked at
		case field == "metadata":
			raw, err := list.ReadValue()
			if err != nil {
				return about, unexpected(err)
			}
			if err := json.Unmarshal(raw, &about); err != nil {
				return about, err
			}
		default:
			if err := list.SkipValue(); err != nil {
				return about, unexpected(err)
			}
		}
	}
	if _, err := list.ReadToken(); err != nil { // the end of the object
		return about, unexpected(err)
	}
	switch _, err := list.ReadToken(); {
	case err == nil:
		return about, errors.New("there is something behind the list")
	case !errors.Is(err, io.EOF):
		return about, err
	}
	return about, nil
}

func eachInProtobuf(r *bufio.Reader, visit func(raw []byte, protobuf bool) error) (about metav1.ListMeta, err error) {
	var item bytes.Buffer
	read := func(r *bufio.Reader, size int64) ([]byte, error) {
		item.Reset()
		_, err := io.CopyN(&item, r, size)
		return item.Bytes(), unexpected(err)
	}
	err = eachField(r, func(r *bufio.Reader, field protowire.Number, size int64) error {
		if field != fieldRaw {
			_, err := io.CopyN(io.Discard, r, size)
			return unexpected(err)
		}
		within := &io.LimitedReader{R: r, N: size}
		err := eachField(bufio.NewReader(within), func(r *bufio.Reader, field protowire.Number, size int64) error {
			raw, err := read(r, size)
			switch {
			case err != nil:
				return err
			case field == fieldListMeta:
				return about.Unmarshal(raw)
			case field == fieldItems:
				return visit(raw, true)
			}
			return nil
		})
		if err == nil && within.N > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	return about, err
}

// eachField visits the fields of a message that are messages, texts or bytes. A visit reads as many bytes as the field
// has.
func eachField(r *bufio.Reader, visit func(r *bufio.Reader, field protowire.Number, size int64) error) error {
	for {
		tag, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		field, kind := protowire.DecodeTag(tag)
		switch kind {
		case protowire.VarintType:
			_, err = binary.ReadUvarint(r)
		case protowire.Fixed32Type:
			_, err = r.Discard(4)
		case protowire.Fixed64Type:
			_, err = r.Discard(8)
		case protowire.BytesType:
			var size uint64
			if size, err = binary.ReadUvarint(r); err != nil {
				break
			}
			if size > math.MaxInt32 {
				return fmt.Errorf("a field of %d bytes", size)
			}
			if err := visit(r, field, int64(size)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a field of type %d", kind)
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// unexpected makes the end an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
