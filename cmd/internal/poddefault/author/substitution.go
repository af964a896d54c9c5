// SPDX-License-Identifier: Apache-2.0

package author

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// strayPlaceholders reports placeholders in fields without substitution. Names of
// objects that a pod may use are never substituted, because otherwise whoever labels a
// pod could choose its Secrets.
func strayPlaceholders(raw []byte, spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) (errs field.ErrorList) {
	if !spec.Substitute {
		return nil
	}
	replaced := meta.Substituted(spec, path)
	var look func(value jsontext.Value, at *field.Path)
	look = func(value jsontext.Value, at *field.Path) {
		r := rawjson.NewReader(value)
		switch r.Kind() {
		case '{':
			r.Object(func(name []byte) { look(r.Value(), at.Child(string(name))) })
		case '[':
			r.Array(func(i int) { look(r.Value(), at.Index(i)) })
		case '"':
			text, ok := r.String()
			plain := strings.ReplaceAll(string(text), "$$", "")
			if ok && (strings.Contains(plain, "${namespace}") || strings.Contains(plain, "${pod.")) && !replaced[at.String()] {
				errs = append(errs, field.Forbidden(at, "placeholders are replaced in env values, args and subPaths alone, and never in names, "+
					"which the author of a pod's labels would choose: write a literal name"))
			}
		}
	}
	r := rawjson.NewReader(raw)
	r.Object(func(name []byte) {
		if value := r.Value(); string(name) != "desc" {
			look(value, path.Child(string(name)))
		}
	})
	return errs
}
