// SPDX-License-Identifier: Apache-2.0

package serverdoctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// answers are what an API server answers to lists of revisions: objects, or a status code.
type answers map[string]any

func (a answers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch answer := a[req.URL.Path].(type) {
	case []*revision.Object:
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{}, "items": answer})
	case int:
		w.WriteHeader(answer)
		reason := map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusInternalServerError: metav1.StatusReasonInternalError}[answer]
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(answer), Reason: reason})
	default:
		http.NotFound(w, req)
	}
}

func revisionOf(namespace, owner, meaning string) *revision.Object {
	ref := &metav1.OwnerReference{APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind, Name: owner, UID: "1", Controller: new(true)}
	if namespace == "" {
		ref.APIVersion, ref.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ClusterPodDefaultKind
	}
	return revision.New(ref, namespace, []byte(meaning), 1)
}

// forgedIn is a revision whose spec is not what its name says.
func forgedIn(namespace, owner string) *revision.Object {
	o := revisionOf(namespace, owner, `{"selector":{}}`)
	o.Spec.Raw = []byte(`{"selector":{},"serviceAccountName":"admin"}`)
	return o
}

func TestDoctorNamesTheRevisionsThatAreNotProven(t *testing.T) {
	namespaced, clusterWide := revision.Path(revision.AllNamespaces), revision.Path("")
	honest := []*revision.Object{revisionOf("team-a", "env", `{"selector":{}}`)}
	unlabelled := revisionOf("team-a", "env", `{"selector":{}}`)
	unlabelled.Labels = nil
	forged, none := forgedIn("team-a", "env"), []*revision.Object(nil)
	var flood []*revision.Object
	for i := range 9 {
		flood = append(flood, forgedIn("team-a", fmt.Sprint("flood-", i)))
	}
	flood = append(flood, forgedIn("team-b", "env"))
	var everywhere []*revision.Object
	for i := range 8 {
		everywhere = append(everywhere, forgedIn(fmt.Sprint("team-", i), "env"))
	}
	for what, c := range map[string]struct {
		answers answers
		want    []string // how lines begin or what is in them, in their order
	}{
		"none":           {answers{namespaced: none, clusterWide: none}, []string{"ok: 0 revisions match their names"}},
		"honest ones":    {answers{namespaced: honest, clusterWide: none}, []string{"ok: 1 revision matches its name"}},
		"a forged one":   {answers{namespaced: append(honest, forged), clusterWide: none}, []string{"its spec is that of revision ... delete it: kubectl delete poddefaultrevisions.sallyport.io -n team-a " + forged.Name}},
		"without labels": {answers{namespaced: []*revision.Object{unlabelled}, clusterWide: none}, []string{"fix: 1 revision is ignored, ... is not the name of a revision"}},
		"of the cluster": {answers{namespaced: honest, clusterWide: []*revision.Object{forgedIn("", "all")}}, []string{"ClusterPodDefaultRevision all-... kubectl delete clusterpoddefaultrevisions.sallyport.io all-"}},
		"a flood": {answers{namespaced: flood, clusterWide: []*revision.Object{forgedIn("", "all")}}, []string{
			"ClusterPodDefaultRevision all-", "fix: 9 revisions are ignored, ... PodDefaultRevision team-a/flood-0-", "PodDefaultRevision team-b/env-"}},
		"many namespaces": {answers{namespaced: everywhere, clusterWide: none}, []string{
			"team-0/env-", "team-1/env-", "team-2/env-", "team-3/env-", "team-4/env-", "fix: in other namespaces 3 more revisions are ignored"}},
		"no rights":        {answers{namespaced: http.StatusForbidden, clusterWide: none}, []string{"skip: no permission to list poddefaultrevisions"}},
		"rights of one":    {answers{namespaced: []*revision.Object{forged}, clusterWide: http.StatusForbidden}, []string{"skip: no permission to list clusterpoddefaultrevisions", "fix: 1 revision is ignored, "}},
		"no definitions":   {answers{}, []string{"skip: there is no definition of clusterpoddefaultrevisions", "skip: there is no definition of poddefaultrevisions"}},
		"a broken cluster": {answers{namespaced: http.StatusInternalServerError, clusterWide: none}, []string{"fix: list poddefaultrevisions: "}},
	} {
		server := httptest.NewServer(c.answers)
		client, err := cluster.New(&rest.Config{Host: server.URL}, "")
		if err != nil {
			t.Fatal(err)
		}
		report := &doctor.Report{}
		checkRevisions(t.Context(), &doctor.Installation{Cluster: client, Webhooks: []cluster.Webhook{{Name: poddefault.Name}}}, report)
		server.Close()
		var got []string
		for _, d := range report.Checks {
			got = append(got, string(d.Status)+": "+d.Text+" "+d.Remedy)
		}
		if !slices.EqualFunc(got, c.want, containsAll) {
			t.Errorf("%s: doctor says\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// containsAll reports whether a line has the parts of a text, which " ... " or "..." separates.
func containsAll(line, parts string) bool {
	for part := range strings.SplitSeq(parts, "...") {
		before, after, found := strings.Cut(line, strings.TrimSpace(part))
		if !found || strings.HasPrefix(part, "fix: ") && before != "" {
			return false
		}
		line = after
	}
	return true
}

func TestDoctorSaysNothingOfRevisionsWithoutInjection(t *testing.T) {
	report := &doctor.Report{}
	checkRevisions(t.Context(), &doctor.Installation{Webhooks: []cluster.Webhook{{Name: "check.example.com"}}}, report)
	if len(report.Checks) > 0 {
		t.Errorf("%+v", report.Checks)
	}
}
