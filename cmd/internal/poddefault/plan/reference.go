// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A Reference names an object, and the state of it that this plan is of.
type Reference struct {
	namespace, name, ResourceVersion string // empty namespace: cluster-scoped
	UID                              types.UID
	generation                       int64
	changed                          int64  // see ChangedAt, in seconds
	title                            string // for messages; unique
	decision                         string // the object's name in [meta.DecisionsAnnotation]
}

// Name returns the object's name.
func (r *Reference) Name() string { return r.name }

// Namespace returns the object's namespace, or "" for a ClusterPodDefault.
func (r *Reference) Namespace() string { return r.namespace }

// Cluster reports whether the object is a ClusterPodDefault.
func (r *Reference) Cluster() bool { return r.namespace == "" }

// String names the object in messages: "PodDefault team-a/proxy".
func (r *Reference) String() string { return r.title }

// Identity implements [store.Object].
func (r *Reference) Identity() store.Identity {
	return store.Identity{NamespacedName: types.NamespacedName{Namespace: r.namespace, Name: r.name}, UID: r.UID, ResourceVersion: r.ResourceVersion}
}

// Generation is the object's metadata.generation.
func (r *Reference) Generation() int64 { return r.generation }

// Decision is the object's name in [meta.DecisionsAnnotation].
func (r *Reference) Decision() string { return r.decision }

// Owner is the object as the owner of its revisions.
func (r *Reference) Owner() revision.Owner {
	return revision.Owner{Namespace: r.namespace, UID: r.UID}
}

// ChangedAt returns when the object was last written, ignoring its status, to the second.
func (r *Reference) ChangedAt() time.Time { return time.Unix(r.changed, 0) }

func changedAt(meta *metav1.ObjectMeta) int64 {
	at := meta.CreationTimestamp.Time
	for _, m := range meta.ManagedFields {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at.Unix()
}

// Mark returns the annotation of pods that the object was applied to.
func (r *Reference) Mark() string { return meta.MarkFor(r.decision) }

// SkipMark returns the annotation that says why the object was skipped.
func (r *Reference) SkipMark() string { return meta.SkipMarkFor(r.decision) }

// SkipValue returns the value of that annotation.
func (r *Reference) SkipValue(reason string) string {
	return "generation " + strconv.FormatInt(r.generation, 10) + ": " + reason
}
