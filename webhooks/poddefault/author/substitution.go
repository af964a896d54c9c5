// SPDX-License-Identifier: Apache-2.0

package author

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// named are the fields of a spec that name what a pod may use. They are never
// substituted: who labels a pod would choose its Secrets.
var named = []string{"envFrom", "volumes", "imagePullSecrets", "serviceAccountName", "priorityClassName", "runtimeClassName"}

// substitutedNames reports placeholders in names, which their author has most likely
// taken for what they are not.
func substitutedNames(raw []byte, spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) (errs field.ErrorList) {
	if !spec.Substitute {
		return nil
	}
	var look func(value jsontext.Value, at *field.Path)
	look = func(value jsontext.Value, at *field.Path) {
		r := jsonpatch.NewReader(value)
		switch r.Kind() {
		case '{':
			r.Object(func(name []byte) { look(r.Value(), at.Child(string(name))) })
		case '[':
			r.Array(func(i int) { look(r.Value(), at.Index(i)) })
		case '"':
			if text, ok := r.String(); ok && (strings.Contains(string(text), "${namespace}") || strings.Contains(string(text), "${pod.")) {
				errs = append(errs, field.Forbidden(at, "names are never substituted: whoever labels a pod would choose what it may use; write the name"))
			}
		}
	}
	for _, name := range named {
		if value, there := jsonpatch.Lookup(raw, name); there {
			look(value, path.Child(name))
		}
	}
	for i := range spec.Env {
		if value, there := jsonpatch.Lookup(raw, "env", strconv.Itoa(i), "valueFrom"); there {
			look(value, path.Child("env").Index(i).Child("valueFrom"))
		}
	}
	return errs
}
