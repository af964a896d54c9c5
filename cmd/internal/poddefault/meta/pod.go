// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Metadata decides whether to read the rest of a pod.
type Metadata struct {
	podmeta.Metadata
	Request  types.UID
	DryRun   bool
	Workload Workload // see workloadOf; empty until needed
	History  *History // see past; nil until needed
	Unplaced bool     // whether its place in rollouts by pod is unknown, see Includes
}

// ReadMetadata reads what selects objects for a pod, and stops there.
func ReadMetadata(raw []byte) (md Metadata, ok bool) {
	md.Metadata, ok = podmeta.Read(raw, podmeta.Selected)
	return md, ok
}
