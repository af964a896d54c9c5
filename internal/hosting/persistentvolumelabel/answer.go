// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"maps"
	"slices"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// An answer is what labels mean for volumes. It is computed once per response of the
// cloud and shared.
type answer struct {
	labels   map[string]string
	required []nodeterms.Requirement
	invalid  string // why the API server would refuse the labels
	err      error  // the labels have no valid meaning

	// The values for volumes with neither labels nor node affinity, the common case.
	allLabels, affinity []byte
}

func newAnswer(labels map[string]string) *answer {
	a := &answer{labels: labels, invalid: invalid(labels)}
	if a.required, a.err = requirements(labels); a.err != nil || len(labels) == 0 {
		return a
	}
	a.allLabels = []byte{'{'}
	for i, key := range slices.Sorted(maps.Keys(labels)) {
		if i > 0 {
			a.allLabels = append(a.allLabels, ',')
		}
		a.allLabels = append(rawjson.AppendString(a.allLabels, key), ':')
		a.allLabels = rawjson.AppendString(a.allLabels, labels[key])
	}
	a.allLabels = append(a.allLabels, '}')
	a.affinity = append(append([]byte(`{"required":{"nodeSelectorTerms":[`), a.term()...), `]}}`...)
	return a
}

// term returns one term with all requirements.
func (a *answer) term() []byte {
	t := nodeterms.Term{Expressions: a.required}
	return t.Encode()
}
