// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
)

// options returns the options of the request: whether it is a dry run, and its field manager.
func (r *Run) options() runtime.Object {
	kind := metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String()}
	var dry []string
	if r.Request.DryRun != nil && *r.Request.DryRun {
		dry = []string{metav1.DryRunAll}
	}
	switch r.Request.Operation {
	case admissionv1.Create:
		kind.Kind = "CreateOptions"
		return &metav1.CreateOptions{TypeMeta: kind, DryRun: dry, FieldManager: r.FieldManager}
	case admissionv1.Update:
		kind.Kind = "UpdateOptions"
		return &metav1.UpdateOptions{TypeMeta: kind, DryRun: dry, FieldManager: r.FieldManager}
	case admissionv1.Delete:
		kind.Kind = "DeleteOptions"
		return &metav1.DeleteOptions{TypeMeta: kind, DryRun: dry}
	}
	return nil
}

// noteOptions notes that reads depend on options of the request, which may be others in a dry run.
func (e *evaluation) noteOptions(found []reads.Read) {
	out := e.result
	for _, read := range found {
		ofRequest := read.Root == reads.Request
		manager := ofRequest && len(read.Path) > 1 && read.Path[0] == "options" && read.Path[1] == "fieldManager"
		out.readsManager = out.readsManager || manager || e.readsManager(read)
		out.readsDryRun = out.readsDryRun || ofRequest && !manager && (len(read.Path) == 0 || slices.Contains([]string{"dryRun", "options"}, read.Path[0]))
	}
}

// readsManager reports whether a read depends on who manages the fields of the object. One manager creates an
// object, whoever it is.
func (e *evaluation) readsManager(read reads.Read) bool {
	path := []string{"metadata", "managedFields", reads.Any, "manager"}
	n := min(len(path), len(read.Path))
	if n > 1 && read.Path[1] == reads.Any { // 'uid' in object.metadata
		return false
	}
	return read.Root == reads.Object && matches(path[:n], read.Path[:n]) && (!read.Shallow || e.Request.Operation != admissionv1.Create)
}

// inDryRun returns why a dry run would not answer for the request; empty if it would.
func (r *Run) inDryRun(result *Result) string {
	switch {
	case result.readsDryRun && (r.Request.DryRun == nil || !*r.Request.DryRun):
		return "a policy reads whether the request is a dry run"
	case result.readsManager && r.FieldManager == "" && r.Request.Operation != admissionv1.Delete:
		return "a policy reads the field manager, which --field-manager names"
	}
	return ""
}
