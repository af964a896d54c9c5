// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
)

// classesIn are all classes of a cluster.
type classesIn []string

func (c classesIn) Missing(_ context.Context, resource schema.GroupVersionResource, name string) bool {
	for _, known := range c {
		if known == resource.Resource+"/"+name {
			return false
		}
	}
	return true
}

func TestAClassThatDoesNotExistIsWarnedOf(t *testing.T) {
	cluster := classesIn{"priorityclasses/high", "runtimeclasses/kata"}
	for name, c := range map[string]struct{ object, old, want string }{
		"classes that exist":            {`{"spec":{"priorityClassName":"high","runtimeClassName":"kata"}}`, "", ""},
		"no classes":                    {`{"spec":{}}`, "", ""},
		"a priority class":              {`{"spec":{"priorityClassName":"low"}}`, "", "spec.priorityClassName: there is no PriorityClass"},
		"a runtime class":               {`{"spec":{"runtimeClassName":"gvisor"}}`, `{"spec":{"runtimeClassName":"kata"}}`, "spec.runtimeClassName: there is no RuntimeClass"},
		"one that was there before":     {`{"spec":{"desc":"x","runtimeClassName":"gvisor"}}`, `{"spec":{"runtimeClassName":"gvisor"}}`, ""},
		"a name in the other kind only": {`{"spec":{"priorityClassName":"kata"}}`, "", "spec.priorityClassName"},
	} {
		t.Run(name, func(t *testing.T) {
			allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
				return admission.Allowed(), nil
			})
			req := &admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(c.object)}, OldObject: runtime.RawExtension{Raw: []byte(c.old)}}
			resp, err := WarnOfClasses(allow, cluster.Missing).Handle(t.Context(), req)
			if err != nil || !resp.Allowed {
				t.Fatal(resp, err)
			}
			if got := strings.Join(resp.Warnings, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%q", got)
			}
		})
	}
	denies := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.DeniedResponse("no"), nil
	})
	resp, err := WarnOfClasses(denies, cluster.Missing).Handle(t.Context(), &admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(`{"spec":{"priorityClassName":"x"}}`)}})
	if err != nil || resp.Allowed || len(resp.Warnings) > 0 {
		t.Errorf("%+v, %v", resp, err)
	}
}
