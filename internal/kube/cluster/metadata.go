// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/json/listed"
)

// acceptMetadata asks for metadata alone. Protobuf takes the API server and the client half the time of JSON; API
// servers of others may have JSON only.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// EachMetadata visits the metadata of all objects of a collection that a field selector selects. It
// reads the next page during the visits, and holds two pages.
func (c *Cluster) EachMetadata(ctx context.Context, path, fieldSelector string, visit func(*metav1.ObjectMeta)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages, ended := make(chan []*metav1.ObjectMeta), make(chan error, 1)
	go func() {
		defer close(pages)
		ended <- c.readMetadata(ctx, path, fieldSelector, pages)
	}()
	for page := range pages {
		for _, object := range page {
			visit(object)
		}
	}
	return <-ended
}

// readMetadata reads the pages of a collection, until the context ends.
func (c *Cluster) readMetadata(ctx context.Context, path, fieldSelector string, pages chan<- []*metav1.ObjectMeta) error {
	for next := ""; ; {
		body, err := c.Client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", acceptMetadata).
			Param("fieldSelector", fieldSelector).Param("limit", strconv.Itoa(metadataPageSize)).Param("continue", next).Stream(ctx)
		if err != nil {
			return err
		}
		page, about, err := metadataIn(body)
		_ = body.Close() // it was read
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if next = about.Continue; next == "" {
			return nil
		}
	}
}

// metadataIn reads a PartialObjectMetadataList.
func metadataIn(body io.Reader) (page []*metav1.ObjectMeta, about metav1.ListMeta, err error) {
	about, err = listed.Each(body, func(raw []byte, protobuf bool) error {
		var object metav1.PartialObjectMetadata
		page = append(page, &object.ObjectMeta)
		if protobuf {
			return object.Unmarshal(raw)
		}
		return json.Unmarshal(raw, &object)
	})
	return page, about, err
}
