// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

func TestFilesForAClusterMayBeAdmissionReviews(t *testing.T) {
	checker := fieldcheck.New(fieldcheck.Strict, &strings.Builder{}, &fieldcheck.Definitions{})
	read := func(text string) ([]*manifest.Object, error) {
		return ReadFiles(t.Context(), []string{manifest.Stdin}, strings.NewReader(text), checker, "look at")
	}
	text := `{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: 6f1c, kind: {group: '', version: v1, kind: Pod},
  resource: {group: '', version: v1, resource: pods}, userInfo: {username: alice}, operation: CREATE, namespace: team-a, object: {metadata: {name: a, uid: u}, spec: {newer: 1}}}}`
	objects, err := read(text)
	if err != nil || len(objects) != 1 || objects[0].Title() != "Pod team-a/a" || objects[0].UID != "" || objects[0].GVK() != workload.PodKind {
		t.Errorf("%v, %v", objects, err)
	}
	if objects, err = read(strings.Replace(text, "CREATE", "UPDATE", 1)); err != nil || objects[0].UID != "u" {
		t.Errorf("%v, %v", objects, err)
	}
	if _, err := read("{apiVersion: admission.k8s.io/v1, kind: AdmissionReview}"); err == nil {
		t.Error("one without a request is accepted")
	}
}

func TestKindsAreNamedAsForKubectl(t *testing.T) {
	for word, want := range map[string]string{
		"poddefault": "poddefault", "PodDefaults": "poddefault", "poddefaults.kubeflow.org": "poddefault",
		"ClusterPodDefault": "clusterpoddefault", "clusterpoddefaults.sallyport.io": "clusterpoddefault", "pod": "",
	} {
		got := ""
		if kind := kindOf(word); kind != nil {
			got = kind.Words[0]
		}
		if got != want {
			t.Errorf("%s is %q, want %q", word, got, want)
		}
		if _, ofCluster, err := ParseRevised(word + "/x"); (err == nil) != (want != "") || ofCluster != (want == "clusterpoddefault") {
			t.Errorf("%s/x: of the cluster %t, %v", word, ofCluster, err)
		}
	}
}
