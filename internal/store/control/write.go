// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/store"
)

// PatchStatus writes a status unless the object has changed since it was read, because the
// status would then describe an old spec. It returns the new resourceVersion. It replaces the
// status as a whole: a merge patch would keep members that are no longer there.
func PatchStatus(ctx context.Context, client rest.Interface, resource string, is store.Identity, status any) (resourceVersion string, err error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": is.ResourceVersion},
		{"op": "replace", "path": "/metadata/uid", "value": is.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return "", err
	}
	raw, err := client.Patch(types.JSONPatchType).NamespaceIfScoped(is.Namespace, is.Namespace != "").
		Resource(resource).Name(is.Name).SubResource("status").Body(patch).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var written metav1.PartialObjectMetadata
	err = json.Unmarshal(raw, &written)
	return written.ResourceVersion, err
}

// Failed returns the error of a write for a [Reconcile] to return, after logging it with what could not be written.
// It returns nil if the object has been deleted, because the watch will say so. Conflicts are not logged: the watch
// will deliver what has changed.
func (f *Frame) Failed(ctx context.Context, err error, what string, about ...any) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case ctx.Err() == nil && !apierrors.IsConflict(err):
		f.Log.With(about...).WarnContext(ctx, "cannot write, will try again", "what", what, "error", err)
	}
	return err
}

// Labels of writes by their results.
const (
	Success  = "success"
	Conflict = "conflict" // the object had changed or was gone
	Failure  = "failure"
)

// Result is the label of a write with that error.
func Result(err error) string {
	switch {
	case err == nil:
		return Success
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return Conflict
	}
	return Failure
}

// Writes returns a counter of writes by their results, all of which it shows from the start.
func Writes(name, help string, results ...string) *prometheus.CounterVec {
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	for _, result := range results {
		writes.WithLabelValues(result)
	}
	return writes
}
