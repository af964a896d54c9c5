// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// Limits of the schema.
const (
	maxSteps       = 20
	maxHoldSeconds = 365 * 24 * 3600
)

// maxRecorded is the size of a spec that can be recorded: etcd takes 1.5 MiB by default, and a
// revision has metadata.
const maxRecorded = 3<<19 - 32<<10

// recordedSize is about how many bytes etcd gets for a spec: the API server escapes what HTML
// has a meaning for, and repeats the keys of objects outside of lists in managed fields.
func recordedSize(spec []byte) int {
	size := len(spec)
	for _, c := range spec {
		if c == '<' || c == '>' || c == '&' {
			size += len(`\u003c`) - 1
		}
	}
	return size + managedSize(spec)
}

func managedSize(object jsontext.Value) (size int) {
	var members map[string]jsontext.Value
	if json.Unmarshal(object, &members) != nil {
		return 0
	}
	for name, value := range members {
		size += len(name) + len(`"f:":{},`)
		if value.Kind() == '{' {
			size += managedSize(value)
		}
	}
	return size
}

// rollout checks what the schema of the definition does too, for objects in files, and
// what it does not. An object with such an error is not left out: its rollout does not
// decide what it means for pods.
func (c *checker) rollout(path *field.Path) {
	if limit := c.spec.RevisionHistoryLimit; limit != nil && *limit < 0 {
		c.invalid(path.Child("revisionHistoryLimit"), *limit, "must be at least 0")
	}
	r := c.spec.Rollout
	if r == nil {
		return
	}
	path = path.Child("rollout")
	if size := recordedSize(meta.EncodedSpec(c.spec)); size > maxRecorded {
		c.invalid(path, size, "is the size in bytes of the spec when it is recorded, which a rollout needs, and etcd takes at most %d: make the spec smaller, or remove rollout", maxRecorded)
	}
	at := path.Child("steps")
	switch {
	case len(r.Steps) == 0:
		c.required(at, "a rollout has at least one step")
	case len(r.Steps) > maxSteps:
		c.errs = append(c.errs, field.TooMany(at, len(r.Steps), maxSteps))
		return
	}
	percentOf := func(at *field.Path, percent *int32) {
		if percent != nil && (*percent < 0 || *percent > 100) {
			c.invalid(at, *percent, "must be between 0 and 100")
		}
	}
	widest := int32(-1) // percentage of the steps so far that select all pods
	for i, step := range r.Steps {
		at := at.Index(i)
		percentOf(at.Child("percent"), step.Percent)
		if hold := step.HoldSeconds; hold != nil && (*hold < 0 || *hold > maxHoldSeconds) {
			c.invalid(at.Child("holdSeconds"), *hold, "must be between 0 and %d", maxHoldSeconds)
		}
		percent := ptr.Deref(step.Percent, 100)
		if percent >= 0 && percent <= widest {
			c.warn(at, "an earlier step includes all pods that this one does")
		}
		if len(selectors.Terms(step.PodSelector))+len(selectors.Terms(step.NamespaceSelector)) == 0 {
			widest = max(widest, percent)
		}
	}
	if by := r.By; by != "" && by != kubeflowv1alpha1.RolloutByWorkload && by != kubeflowv1alpha1.RolloutByPod {
		c.errs = append(c.errs, field.NotSupported(path.Child("by"), by, []kubeflowv1alpha1.RolloutUnit{kubeflowv1alpha1.RolloutByPod, kubeflowv1alpha1.RolloutByWorkload}))
	}
	percentOf(path.Child("maxFailedPercent"), r.MaxFailedPercent)
	if r.AbortedRevision != "" {
		c.revision(path.Child("abortedRevision"), r.AbortedRevision)
	}
	if p := r.Promotion; p != nil {
		at := path.Child("promotion")
		c.revision(at.Child("revision"), p.Revision)
		if p.Step != nil && *p.Step < 1 {
			c.invalid(at.Child("step"), *p.Step, "must be at least 1")
		}
		if p.Revision != "" && p.Revision == r.AbortedRevision {
			c.invalid(at.Child("revision"), p.Revision, "is abortedRevision, too: remove one of them")
		}
	}
}

func (c *checker) revision(at *field.Path, name string) {
	if !revision.IsName(name) {
		c.invalid(at, name, "must be the name of a revision, %d hex digits: see status.currentRevision", revision.Size)
	}
}
