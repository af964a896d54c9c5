// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// warnings are what the pod's author is told, up to a limit.
type warnings struct {
	texts   []string
	omitted int // number of warnings beyond the limit
}

// maxWarning limits the runes of a warning. The API server shows 4096 for all of them
// together.
const maxWarning = 256

func (w *warnings) warn(format string, args ...any) {
	if len(w.texts) == meta.MaxTold {
		w.omitted++
		return
	}
	text := fmt.Sprintf(format, args...)
	if runes := []rune(text); len(runes) > maxWarning {
		text = string(runes[:maxWarning-3]) + "..."
	}
	w.texts = append(w.texts, text)
}

// Told returns the warnings, with a count of those left out.
func (w *warnings) Told() []string {
	if w.omitted == 0 {
		return w.texts
	}
	return append(w.texts, fmt.Sprintf("and %d more warnings about PodDefaults", w.omitted))
}

// holder names the object that added something, or else pod.
func holder(by *plan.Plan, pod string) string {
	if by != nil {
		return by.String()
	}
	return pod
}

// another describes a conflicting single value.
func another(opponent *plan.Plan) string {
	if opponent == nil {
		return "the pod has another value"
	}
	return "the values differ"
}

// placeIn names a list element for messages.
func placeIn(kind *plan.ListKind, key string, t *podstate.Container) string {
	return placeOf(kind.Name+" "+key, t)
}

// placeOf adds the container to a message. A nil container means none.
func placeOf(what string, t *podstate.Container) string {
	if t != nil {
		return what + " of container " + t.Name
	}
	return what
}
