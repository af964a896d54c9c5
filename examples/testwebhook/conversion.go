// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

// convertedGroup is the group of what is converted.
const convertedGroup = "stable.example.com"

// convert converts between v1, which has hostPort, and v2, which has host and port. An
// object without either stays as it is.
func convert(_ context.Context, object *unstructured.Unstructured, version string) error {
	switch version {
	case "v2":
		hostPort, there, err := unstructured.NestedString(object.Object, "hostPort")
		if err != nil {
			return errors.New("hostPort is not a string")
		}
		if !there {
			return nil
		}
		parts := strings.Split(hostPort, ":")
		if len(parts) != 2 {
			return errors.New("hostPort is not of the form host:port")
		}
		delete(object.Object, "hostPort")
		object.Object["host"], object.Object["port"] = parts[0], parts[1]
	case "v1":
		host, hasHost, errHost := unstructured.NestedString(object.Object, "host")
		port, hasPort, errPort := unstructured.NestedString(object.Object, "port")
		switch {
		case errHost != nil || errPort != nil:
			return errors.New("host or port is not a string")
		case !hasHost && !hasPort:
			return nil
		}
		delete(object.Object, "host")
		delete(object.Object, "port")
		object.Object["hostPort"] = host + ":" + port
	}
	return nil
}

// anyKind converts every kind of the group: the suites make up a kind for each case.
// There is one converter for each kind that was asked for, made when it first is.
type anyKind struct {
	mu    sync.Mutex
	kinds map[string]*wire.Conversion
}

// maxKinds bounds what callers can make it keep.
const maxKinds = 1000

func newAnyKind() *anyKind { return &anyKind{kinds: map[string]*wire.Conversion{}} }

// answer answers one ConversionReview.
func (a *anyKind) answer(ctx context.Context, w http.ResponseWriter, call serving.Call) {
	converter, err := a.of(kindIn(call.Body))
	if err != nil {
		http.Error(w, "the kind cannot be converted", http.StatusInternalServerError)
		return
	}
	converter.Answer(ctx, w, call.Request.Header, call.Body)
}

// kindIn is the kind of the first object in a review, and some other one if there is
// none or the body is not a review: what is wrong is then said by who reads all of it.
func kindIn(body []byte) string {
	var review struct {
		Request struct {
			Objects []struct {
				Kind string `json:"kind"`
			} `json:"objects"`
		} `json:"request"`
	}
	if err := json.Unmarshal(body, &review); err != nil || len(review.Request.Objects) == 0 || review.Request.Objects[0].Kind == "" {
		return "None"
	}
	return review.Request.Objects[0].Kind
}

func (a *anyKind) of(kind string) (*wire.Conversion, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if handler, ok := a.kinds[kind]; ok {
		return handler, nil
	}
	if len(a.kinds) == maxKinds {
		clear(a.kinds) // they are cheap to make again
	}
	// What a kind is called has no bearing here, and those of the suites are no names for
	// a plural to be guessed from.
	converter := conversion.Unstructured(schema.GroupKind{Group: convertedGroup, Kind: kind}, []string{"v1", "v2"}, convert).WithPlural("any")
	handler, err := wire.NewConversion([]conversion.Converter{converter}, wire.ConversionOptions{})
	if err != nil {
		return nil, err
	}
	a.kinds[kind] = handler
	return handler, nil
}
