// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"slices"
	"sync"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// MaxSpec limits the JSON size of a spec in bytes. etcd stores 1.5 MiB of a pod.
const MaxSpec = 1 << 20

// EncodedSpec encodes a spec as JSON.
func EncodedSpec(spec *kubeflowv1alpha1.PodDefaultSpec) []byte {
	buffer := Encoding.Get().(*[]byte)
	defer Encoding.Put(buffer)
	encoded, err := jsonpatch.AppendValue((*buffer)[:0], spec)
	if err != nil { // values decoded from JSON can be encoded
		return make([]byte, MaxSpec+1)
	}
	if cap(encoded) <= 64<<10 {
		*buffer = encoded
	}
	return slices.Clone(encoded)
}

// Encoding has buffers for encoded values.
var Encoding = sync.Pool{New: func() any { return new([]byte) }}

// Quote returns a string as JSON.
func Quote(s string) []byte {
	return rawjson.AppendString(make([]byte, 0, len(s)+2), s)
}
