// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"testing"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// reviewOf returns an AdmissionReview as an API server sends it.
func reviewOf(version, resource, kind, rest string) string {
	return fmt.Sprintf(`{apiVersion: admission.k8s.io/%s, kind: AdmissionReview, request: {uid: 6f1c, kind: {group: '', version: v1, kind: %s},
  resource: {group: '', version: v1, resource: %s}, userInfo: {username: alice}, %s}}`, version, kind, resource, rest)
}

func FuzzRecorded(f *testing.F) {
	for _, seed := range []string{
		reviewOf("v1", "pods", "Pod", "operation: CREATE, object: {metadata: {name: a}}"),
		reviewOf("v1beta1", "pods", "Pod", "operation: DELETE, oldObject: {metadata: {name: a}}"),
		reviewOf("v1", "pods", "PodExecOptions", "operation: CONNECT, object: null, options: {}"),
		"{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {object: [], operation: X, kind: {kind: A}, resource: {resource: b}}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := manifest.Parse("in.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, o := range objects {
			if !o.IsAdmissionReview() {
				continue
			}
			q, err := Recorded(o)
			if err != nil {
				continue
			}
			if q.Object.Kind == "" || len(q.Object.Raw) == 0 || q.Object.Title() == "" || q.Version != o.APIVersion {
				t.Errorf("%s gives %+v", text, q.Object)
			}
			if out, err := Decide(t.Context(), q, nil); err != nil || len(out.Calls) > 0 {
				t.Errorf("%v, %+v", err, out)
			}
		}
	})
}
