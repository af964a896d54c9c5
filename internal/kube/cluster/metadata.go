// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// acceptMetadata asks for metadata alone. Protobuf takes the API server and the client half the time of JSON; API
// servers of others may have JSON only.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// EachMetadata visits the metadata of all objects of a collection that a field selector selects. It
// reads the next page during the visits, and holds two pages as they were sent.
func (c *Cluster) EachMetadata(ctx context.Context, path, fieldSelector string, visit func(*metav1.ObjectMeta)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, free, ended := make(chan *metadataPage), make(chan *metadataPage, 2), make(chan error, 1)
	free <- &metadataPage{}
	free <- &metadataPage{}
	go func() {
		defer close(read)
		ended <- c.readMetadata(ctx, path, fieldSelector, free, read)
	}()
	for page := range read {
		if err := page.each(visit); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		free <- page
	}
	return <-ended
}

// readMetadata reads a collection into free pages, until the context ends.
func (c *Cluster) readMetadata(ctx context.Context, path, fieldSelector string, free <-chan *metadataPage, read chan<- *metadataPage) error {
	for next := ""; ; {
		var page *metadataPage
		select {
		case page = <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
		body, err := c.Client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", acceptMetadata).
			Param("fieldSelector", fieldSelector).Param("limit", strconv.Itoa(metadataPageSize)).Param("continue", next).Stream(ctx)
		if err != nil {
			return err
		}
		page.body.Reset()
		_, err = page.body.ReadFrom(body)
		_ = body.Close() // it was read
		if err == nil {
			next, err = page.parse()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		select {
		case read <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if next == "" {
			return nil
		}
	}
}

// A metadataPage is a PartialObjectMetadataList as it was sent. Its memory is for further pages, too.
type metadataPage struct {
	body    bytes.Buffer
	objects [][]byte                         // in the body, if that is Protobuf
	list    metav1.PartialObjectMetadataList // otherwise
}

// protobufPrefix is what an object in Protobuf begins with. A runtime.Unknown follows.
var protobufPrefix = []byte("k8s\x00")

// Fields of messages, from the generated.proto of their packages.
const (
	fieldRaw      protowire.Number = 2 // of runtime.Unknown
	fieldListMeta protowire.Number = 1 // of PartialObjectMetadataList
	fieldItems    protowire.Number = 2
)

// parse finds the objects in the body. Next is the token for the next page, empty for the last one.
func (p *metadataPage) parse() (next string, err error) {
	p.objects, p.list = p.objects[:0], metav1.PartialObjectMetadataList{}
	envelope, binary := bytes.CutPrefix(p.body.Bytes(), protobufPrefix)
	if !binary {
		err = json.Unmarshal(p.body.Bytes(), &p.list)
		return p.list.Continue, err
	}
	var head metav1.ListMeta
	err = eachField(envelope, func(field protowire.Number, value []byte) error {
		if field != fieldRaw {
			return nil
		}
		return eachField(value, func(field protowire.Number, value []byte) error {
			switch field {
			case fieldListMeta:
				return head.Unmarshal(value)
			case fieldItems:
				p.objects = append(p.objects, value)
			}
			return nil
		})
	})
	return head.Continue, err
}

// each visits the metadata of the objects.
func (p *metadataPage) each(visit func(*metav1.ObjectMeta)) error {
	for i := range p.list.Items {
		visit(&p.list.Items[i].ObjectMeta)
	}
	for _, raw := range p.objects {
		var object metav1.PartialObjectMetadata
		if err := object.Unmarshal(raw); err != nil {
			return err
		}
		visit(&object.ObjectMeta)
	}
	return nil
}

// eachField visits the fields of a Protobuf message that are messages, texts or bytes.
func eachField(message []byte, visit func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if kind == protowire.BytesType {
			var value []byte
			if value, n = protowire.ConsumeBytes(message); n >= 0 {
				if err := visit(field, value); err != nil {
					return err
				}
			}
		} else {
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
	}
	return nil
}
