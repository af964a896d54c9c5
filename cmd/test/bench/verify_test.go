// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// An answer that is wrong in any way must not be measured.
func TestVerify(t *testing.T) {
	r := review{uid: "u-1", object: []byte(`{"metadata":{"name":"p","annotations":{"a":"1"}},"spec":{"containers":[{"name":"one","env":[{"name":"A"}]},{"name":"two"}]}}`)}
	adds := &v1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: "proxy", ResourceVersion: "7"},
		Spec: v1alpha1.PodDefaultSpec{
			Env:          []corev1.EnvVar{{Name: "B", Value: "b"}},
			Volumes:      []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
		},
	}
	bare := adds.DeepCopy()
	bare.ResourceVersion = ""
	const mark = `{"op":"add","path":"/metadata/annotations/poddefault.admission.kubeflow.org~1poddefault-proxy","value":"7"}`
	const right = `{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"B","value":"b"}},` +
		`{"op":"add","path":"/spec/containers/1/env","value":[{"name":"B","value":"b"}]},` +
		`{"op":"add","path":"/spec/containers/0/volumeMounts","value":[{"name":"v","mountPath":"/v"}]},` +
		`{"op":"add","path":"/spec/containers/1/volumeMounts","value":[{"name":"v","mountPath":"/v"}]},` +
		`{"op":"add","path":"/spec/volumes","value":[{"name":"v","secret":{"secretName":"s"}}]}`
	const decisions = `{"op":"add","path":"/metadata/annotations/sallyport.io~1poddefaults","value":"proxy"}`

	type change = func(*admissionv1.AdmissionReview)
	patch := func(operations ...string) change {
		return func(a *admissionv1.AdmissionReview) {
			a.Response.Patch = []byte("[" + strings.Join(operations, ",") + "]")
			a.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}
	}
	tests := map[string]struct {
		change  change
		adds    *v1alpha1.PodDefault
		problem string // empty: the answer is right
	}{
		"the intended patch is right":                       {patch(right, mark), adds, ""},
		"an annotation that tells decisions is no change":   {patch(right, mark, decisions), adds, ""},
		"no patch where nothing has to change is right":     {nil, nil, ""},
		"no patch where something has to change is wrong":   {nil, adds, "no JSON Patch"},
		"a patch where nothing has to change is wrong":      {patch(mark), nil, "nothing has to change"},
		"a patch without the mark is wrong":                 {patch(right), adds, "not the intended one"},
		"no mark is right where no PodDefault is applied":   {patch(right), bare, ""},
		"a mark where no PodDefault is applied is wrong":    {patch(right, mark), bare, "not the intended one"},
		"a mark with another version is wrong":              {patch(right, strings.Replace(mark, "7", "8", 1)), adds, "not the intended one"},
		"a patch that leaves out a container is wrong":      {patch(mark), adds, "not the intended one"},
		"a patch that changes more is wrong":                {patch(right, mark, `{"op":"add","path":"/spec/hostname","value":"h"}`), adds, "not the intended one"},
		"a patch that does not apply is wrong":              {patch(`{"op":"remove","path":"/spec/none"}`), adds, "does not apply"},
		"a patch that is not a list is wrong":               {func(a *admissionv1.AdmissionReview) { patch(right)(a); a.Response.Patch = []byte("{}") }, adds, "the patch is not one"},
		"another UID is wrong":                              {func(a *admissionv1.AdmissionReview) { a.Response.UID = "u-2" }, nil, "UID"},
		"another version is wrong":                          {func(a *admissionv1.AdmissionReview) { a.APIVersion = "admission.k8s.io/v1beta1" }, nil, "v1beta1"},
		"a refusal is wrong":                                {func(a *admissionv1.AdmissionReview) { a.Response.Allowed = false }, nil, "refused"},
		"an answer without response is wrong":               {func(a *admissionv1.AdmissionReview) { a.Response = nil }, nil, "no response"},
		"an answer that is right but for its kind is wrong": {func(a *admissionv1.AdmissionReview) { a.Kind = "Review" }, nil, "Review"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := &admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
				Response: &admissionv1.AdmissionResponse{UID: types.UID(r.uid), Allowed: true},
			}
			if test.change != nil {
				test.change(answer)
			}
			data, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			var edit func(map[string]any)
			if test.adds != nil {
				if edit, err = injection(test.adds); err != nil {
					t.Fatal(err)
				}
			}
			err = verify(data, r, edit)
			switch {
			case test.problem == "" && err != nil:
				t.Errorf("got %v", err)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
				t.Errorf("got %v, want an error about %q", err, test.problem)
			}
		})
	}
	if err := verify([]byte("<html>"), r, nil); err == nil {
		t.Error("an answer that is not JSON passes")
	}
}

func TestVerifyAllowedAcceptsTheFloorsAnswer(t *testing.T) {
	if err := verifyAllowed([]byte(cannedAllow)); err != nil {
		t.Error(err)
	}
}

// The neighbour's injection is the one that all answers are checked against.
func TestInjectorMakesTheIntendedPod(t *testing.T) {
	all, err := typicalPodDefaults()
	if err != nil {
		t.Fatal(err)
	}
	list := v1alpha1.PodDefaultList{}
	for _, pd := range all {
		pd.ResourceVersion = "42"
		list.Items = append(list.Items, *pd)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "poddefaults.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := newInjector(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, adds := range map[string]*v1alpha1.PodDefault{"notebook": nil, "notebook-selecting": all[0], "minimal": nil, "minimal-selecting": all[0]} {
		t.Run(name, func(t *testing.T) {
			r, err := loadReview(name)
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			if err := json.Unmarshal(r.object, pod); err != nil {
				t.Fatal(err)
			}
			if err := in.Default(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			changed, err := json.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			if adds == nil {
				if !jsonpatch.Equal(r.object, changed) {
					t.Errorf("changed where nothing matches:\n%s", changed)
				}
				return
			}
			whole, err := json.Marshal([]map[string]any{{"op": "replace", "path": "", "value": json.RawMessage(changed)}})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := json.Marshal(admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
				Response: &admissionv1.AdmissionResponse{UID: types.UID(r.uid), Allowed: true, Patch: whole, PatchType: new(admissionv1.PatchTypeJSONPatch)},
			})
			if err != nil {
				t.Fatal(err)
			}
			edit, err := injection(adds)
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(answer, r, edit); err != nil {
				t.Error(err)
			}
		})
	}
}
