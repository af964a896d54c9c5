// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/store"
)

// before is what a server before revisions has left in a cluster: see its file.
type before struct {
	podDefault  kubeflowv1alpha1.PodDefault
	clusterWide sallyportv1alpha1.ClusterPodDefault
	early, late corev1.Pod
}

func readBefore(t *testing.T) *before {
	t.Helper()
	text, err := os.ReadFile("testdata/before-revisions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := &before{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for _, into := range []any{&out.podDefault, &out.clusterWide, &out.early, &out.late} {
		document, err := documents.Read()
		if err == nil {
			err = yaml.UnmarshalStrict(document, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// testUpgrade lets a server of today follow one that knew no revisions. The marks of its
// pods name a resourceVersion, which is another one in this cluster.
func testUpgrade(t *testing.T, r *rolling) {
	was := readBefore(t)
	name := types.NamespacedName{Namespace: was.podDefault.Namespace, Name: was.podDefault.Name}
	leader := r.replicas[0]
	leader.leader.lead(false)
	restored := func(of *metav1.ObjectMeta) { of.ResourceVersion, of.UID = "", "" }

	pd := was.podDefault.DeepCopy()
	restored(&pd.ObjectMeta)
	stored := &kubeflowv1alpha1.PodDefault{}
	request := r.client.Post().Namespace(name.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Body(pd)
	if err := request.Do(t.Context()).Into(stored); err != nil {
		t.Fatal(err)
	}
	stored.Status = was.podDefault.Status
	stored.APIVersion, stored.Kind = pd.APIVersion, pd.Kind
	request = r.client.Put().Namespace(name.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Name(name.Name).SubResource("status").Body(stored)
	if err := request.Do(t.Context()).Into(stored); err != nil {
		t.Fatal(err)
	}
	clusterClient, err := store.Client(r.config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	cpd := was.clusterWide.DeepCopy()
	restored(&cpd.ObjectMeta)
	if err := clusterClient.Post().Resource(sallyportv1alpha1.ClusterPodDefaultResource).Body(cpd).Do(t.Context()).Into(cpd); err != nil {
		t.Fatal(err)
	}
	mark := meta.Mark(name.Name)
	for _, pod := range []*corev1.Pod{&was.early, &was.late} {
		restored(&pod.ObjectMeta)
		pod.Annotations[meta.ClusterMark(cpd.Name)] = cpd.ResourceVersion
		if pod.Annotations[mark] == was.podDefault.ResourceVersion {
			pod.Annotations[mark] = stored.ResourceVersion
		}
		if _, err := r.clients.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.await("both replicas to read it", func(*kubeflowv1alpha1.PodDefault) bool { return true })
	c := leader.watcher.Get(name)
	early, _ := c.MarkIn(was.early.Annotations)
	if late, _ := c.MarkIn(was.late.Annotations); !c.Wrote(late) || c.Wrote(early) {
		t.Errorf("marks %q and %q of resourceVersion %s", was.early.Annotations[mark], was.late.Annotations[mark], stored.ResourceVersion)
	}
	// A pod that is sent again stays as it is; that the earlier one differs is told.
	again := func(pod *corev1.Pod, warns bool) {
		t.Helper()
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, replica := range r.replicas {
			resp := r.reviewRaw(replica, raw, false)
			if !resp.Allowed || len(resp.Patch) > 0 || len(resp.Warnings) > 0 != warns {
				t.Errorf("pod %s is not left alone: %+v", pod.Name, resp)
			}
		}
	}
	again(&was.late, false)
	again(&was.early, true)

	// The server takes over, and records what there is as the first revision.
	leader.leader.lead(true)
	second := r.await("the first revision", func(pd *kubeflowv1alpha1.PodDefault) bool {
		return pd.Status.CurrentRevision == poddefault.RevisionOf(poddefault.Meaning(&pd.Spec))
	}).Status.CurrentRevision
	if all := r.revisions(); len(all) != 1 || all[0].Number != 1 || all[0].Name != second {
		t.Errorf("revisions: %+v", all)
	}
	again(&was.late, false)
	again(&was.early, true)

	// A rollout begins from there.
	r.patch(`{"env":[{"name":"PROXY","value":"third"}],"rollout":{"steps":[{"percent":0},{"percent":100}]}}`)
	third := r.awaitStep(1)
	if third.Status.Rollout.StableRevision != second {
		t.Errorf("the stable revision is %s, want %s", third.Status.Rollout.StableRevision, second)
	}
	gets := func(value string) {
		t.Helper()
		for _, replica := range r.replicas {
			if patch := r.admit(replica, "web"); !strings.Contains(patch, `"name":"PROXY","value":"`+value+`"`) {
				t.Errorf("a pod does not get %q: %s", value, patch)
			}
		}
	}
	gets("second")
	again(&was.late, false)
	// A replica of before that is not replaced yet gives pods the spec.
	mixed := was.late.DeepCopy()
	mixed.Annotations[mark] = third.ResourceVersion
	mixed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "user", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	for i := range mixed.Spec.Containers[0].Env {
		if mixed.Spec.Containers[0].Env[i].Name == "PROXY" {
			mixed.Spec.Containers[0].Env[i].Value = "third"
		}
	}
	again(mixed, false)
	r.patch(`{"rollout":{"promotion":{"revision":"` + third.Status.CurrentRevision + `","step":2}}}`)
	r.awaitStep(2)
	gets("third")
	if all := r.revisions(); len(all) != 2 || all[1].Number != 2 {
		t.Errorf("revisions: %+v", all)
	}

	r.delete()
	if err := clusterClient.Delete().Resource(sallyportv1alpha1.ClusterPodDefaultResource).Name(cpd.Name).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}
