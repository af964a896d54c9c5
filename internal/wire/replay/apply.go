// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"sync"
	"sync/atomic"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
)

// maxCopyBytes is the limit that kube-apiserver sets to what the copy operations of a patch add to an
// object: JSONPatchMaxCopyBytes of k8s.io/apiserver/pkg/server. A patch that copies a value into itself
// doubles it with each operation.
const maxCopyBytes = 3 << 20

// LimitCopies sets the limit of kube-apiserver for all patches that this process applies, unless a lower
// one is set. The library has only a variable for it, and kube-apiserver sets it in the same way.
var LimitCopies = sync.OnceFunc(func() {
	if set := atomic.LoadInt64(&jsonpatchv4.AccumulatedCopySizeLimit); set <= 0 || set > maxCopyBytes {
		atomic.CompareAndSwapInt64(&jsonpatchv4.AccumulatedCopySizeLimit, set, maxCopyBytes)
	}
})

// Apply applies a JSON Patch with the library and the limit of the API server.
func Apply(object, patch []byte) ([]byte, error) {
	LimitCopies()
	decoded, err := jsonpatchv4.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("its patch does not decode: %w", err)
	}
	small := prune(object, patch)
	if small != nil {
		if after, err := decoded.Apply(small.object); err == nil {
			return small.restore(after), nil
		}
	}
	after, err := decoded.Apply(object)
	if err != nil {
		return nil, fmt.Errorf("its patch does not apply: %w", err)
	}
	return after, nil
}
