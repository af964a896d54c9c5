// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

// near are admitted reviews that come close to a limit.
var near = []hostile{
	{"a large pod", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		return rawPod("", `{"name":"c%d","command":["`+strings.Repeat("x", n/100)+`"]}`, 100), tiny
	}, 2900 << 10, "", 0},
	{"a small pod that gets much", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("large", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(1, n/100, "x") })
		return rawPod("", `{"name":"c%d"}`, 100), []*kubeflowv1alpha1.PodDefault{pd}
	}, 2900 << 10, "", 0},
	{"many variables in each of many containers", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("many", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(n/100, 100, "x") })
		return rawPod("", `{"name":"c%d","env":[{"name":"OWN","value":"y"}]}`, 100), []*kubeflowv1alpha1.PodDefault{pd}
	}, 18_000, "", 0},
}

// TestAReviewTakesNoMoreMemoryThanItsPlaceHas counts everything that a review
// allocates, as if nothing were collected before it ends. A server has as many places
// as its memory has room for.
func TestAReviewTakesNoMoreMemoryThanItsPlaceHas(t *testing.T) {
	for _, c := range near {
		t.Run(c.name, func(t *testing.T) {
			raw, objects := c.make(c.n)
			webhook, err := New(indexOf(objects...), DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			handler, err := wire.NewAdmission(webhook, wire.AdmissionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			request := createRequest(raw)
			request.UID = "u"
			body, err := json.Marshal(&admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
			})
			if err != nil {
				t.Fatal(err)
			}
			var reviewed *wire.Reviewed
			most := allocated(func() { reviewed, err = handler.Review(t.Context(), body) })
			if err != nil || !reviewed.Response.Allowed || len(reviewed.Response.Patch) == 0 {
				t.Fatalf("%v %+v", err, reviewed)
			}
			size := len(reviewed.Answer)
			t.Logf("%d KB of review, %d KB of answer: %d KB allocated", len(body)>>10, size>>10, most>>10)
			if most > serving.ReviewBytes {
				t.Errorf("%d bytes allocated", most)
			}
		})
	}
}
