// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/test/lab"
)

// workloads is the number of workloads in the test of rollouts.
const workloads = 500

// rolling is a PodDefault on an API server, with two replicas.
type rolling struct {
	t        *testing.T
	config   *rest.Config
	client   rest.Interface
	clients  kubernetes.Interface
	history  *revision.Client
	name     string
	replicas []*running
}

func (r *rolling) get() *kubeflowv1alpha1.PodDefault {
	r.t.Helper()
	pd := &kubeflowv1alpha1.PodDefault{}
	err := r.client.Get().Namespace(metav1.NamespaceDefault).Resource(kubeflowv1alpha1.PodDefaultResource).Name(r.name).Do(r.t.Context()).Into(pd)
	if err != nil {
		r.t.Fatal(err)
	}
	return pd
}

func (r *rolling) delete() {
	r.t.Helper()
	err := r.client.Delete().Namespace(metav1.NamespaceDefault).Resource(kubeflowv1alpha1.PodDefaultResource).Name(r.name).Do(r.t.Context()).Error()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rolling) patch(spec string) {
	r.t.Helper()
	err := r.client.Patch(types.MergePatchType).Namespace(metav1.NamespaceDefault).Resource(kubeflowv1alpha1.PodDefaultResource).
		Name(r.name).Body([]byte(`{"spec":` + spec + `}`)).Do(r.t.Context()).Error()
	if err != nil {
		r.t.Fatalf("%s: %v", spec, err)
	}
}

// await waits until the object is as wanted and both replicas have read that and its revisions.
func (r *rolling) await(what string, ok func(*kubeflowv1alpha1.PodDefault) bool) *kubeflowv1alpha1.PodDefault {
	r.t.Helper()
	var pd *kubeflowv1alpha1.PodDefault
	lab.Eventually(r.t.Context(), r.t, patience, what, func(context.Context) (bool, error) {
		if pd = r.get(); !ok(pd) {
			return false, fmt.Errorf("its status is %+v", pd.Status)
		}
		all := r.revisions()
		slices.Reverse(all)
		stable := revision.StableAmong(all)
		return !slices.ContainsFunc(r.replicas, func(replica *running) bool {
			c := replica.watcher.Get(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: r.name})
			return c == nil || c.Identity().ResourceVersion != pd.ResourceVersion || (c.Record == nil) != (stable == nil) ||
				stable != nil && c.Record.Identity() != stable.Identity()
		}), nil
	})
	return pd
}

func (r *rolling) awaitStep(step int32) *kubeflowv1alpha1.PodDefault {
	r.t.Helper()
	return r.await(fmt.Sprint("step ", step), func(pd *kubeflowv1alpha1.PodDefault) bool {
		return pd.Status.Rollout != nil && pd.Status.Rollout.Step == step &&
			pd.Status.CurrentRevision == plan.RevisionOf(plan.Meaning(&pd.Spec))
	})
}

// newPods returns which workloads get the value in a new pod, and fails if the replicas
// disagree about one.
func (r *rolling) newPods(value string) map[int]bool {
	r.t.Helper()
	out := map[int]bool{}
	for i := range workloads {
		var answers []bool
		for _, replica := range r.replicas {
			answers = append(answers, strings.Contains(r.admit(replica, fmt.Sprintf("web-%d", i)), `"value":"`+value+`"`))
		}
		if answers[0] != answers[1] {
			r.t.Errorf("replicas disagree about workload %d", i)
		}
		out[i] = answers[0]
	}
	return out
}

// admit returns the patch for a new pod of a Deployment.
func (r *rolling) admit(replica *running, deployment string) string {
	r.t.Helper()
	resp := r.review(replica, deployment, false)
	if !resp.Allowed {
		r.t.Fatalf("%+v", resp)
	}
	return string(resp.Patch.AppendJSON(nil))
}

// review asks about a new pod of a Deployment, which may have variables of its own.
func (r *rolling) review(replica *running, deployment string, dryRun bool, env ...corev1.EnvVar) *admission.Response {
	r.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: deployment + "-5d8f-", Labels: map[string]string{"use": "true", "pod-template-hash": "5d8f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-5d8f", UID: "u", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x", Env: env}}},
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		r.t.Fatal(err)
	}
	webhook, err := poddefault.New(replica.watcher, poddefault.DefaultSettings())
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(r.t.Context(), &admissionv1.AdmissionRequest{
		UID: "u", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: metav1.NamespaceDefault,
		Operation: admissionv1.Create, DryRun: &dryRun, Object: runtime.RawExtension{Raw: raw},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

func count(is map[int]bool) (n int) {
	for _, one := range is {
		if one {
			n++
		}
	}
	return n
}

// revisions returns those of the object that may be used, the latest last.
func (r *rolling) revisions() []*revision.Record {
	r.t.Helper()
	all := r.allRevisions()
	usable, _ := revision.Of(revision.Owner{Namespace: metav1.NamespaceDefault, UID: r.get().UID}, all)
	slices.Reverse(usable)
	return usable
}

// allRevisions returns those that objects of that name have.
func (r *rolling) allRevisions() (all []*revision.Record) {
	r.t.Helper()
	err := r.history.EachOf(r.t.Context(), metav1.NamespaceDefault, r.name, func(one *revision.Record) { all = append(all, one) })
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// owner is the reference of the object's revisions.
func (r *rolling) owner() *metav1.OwnerReference {
	pd := r.get()
	return &metav1.OwnerReference{
		APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind, Name: pd.Name, UID: pd.UID, Controller: new(true),
	}
}

// write creates a revision, whoever would.
func (r *rolling) write(o *revision.Object) {
	r.t.Helper()
	body, err := json.Marshal(o)
	if err == nil {
		err = r.clients.Discovery().RESTClient().Post().AbsPath(revision.Path(o.Namespace)).Body(body).Do(r.t.Context()).Error()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func variable(value string) string { return `"env":[{"name":"REVISION","value":"` + value + `"}]` }

// startRolling starts two replicas, of which the first leads, for a PodDefault of that name.
func startRolling(t *testing.T, config *rest.Config, name string) *rolling {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	r := &rolling{t: t, config: config, client: client, clients: clients, history: revision.NewClient(clients.Discovery().RESTClient()), name: name}
	for _, leading := range []bool{true, false} {
		r.replicas = append(r.replicas, run(t, config, leading))
	}
	return r
}

// testRefusals checks that a replica which does not lead stops a rollout whose revision it
// refuses pods for.
func testRefusals(t *testing.T, r *rolling) {
	pd := onServer(r.name, "use", "one")
	pd.Spec.Env[0].Name = "OTHER"
	create(t, r.client, pd)
	r.await("the first revision", func(pd *kubeflowv1alpha1.PodDefault) bool { return pd.Status.CurrentRevision != "" })
	r.patch(`{` + variable("two") + `,"rollout":{"steps":[{"percent":100}]}}`)
	second := r.awaitStep(1).Status.CurrentRevision
	follower := r.replicas[1]
	if resp := r.review(follower, "dry", true, corev1.EnvVar{Name: "REVISION", Value: "mine"}); resp.Allowed {
		t.Fatal("a pod with another value is admitted")
	}
	refusals := func() (int, int) {
		workloads := census{}
		follower.watcher.Get(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: r.name}).Refusals(workloads.add)
		return workloads.total()
	}
	if _, all := refusals(); all != 0 {
		t.Errorf("a dry run counts: %d", all)
	}
	for range 3 { // a workload counts once
		r.review(follower, "refused", false, corev1.EnvVar{Name: "REVISION", Value: "mine"})
	}
	for i := range 4 {
		r.admit(follower, fmt.Sprintf("web-%d", i))
	}
	if refused, all := refusals(); refused != 1 || all != 5 {
		t.Errorf("%d of %d workloads are refused", refused, all)
	}
	r.await("the condition", func(pd *kubeflowv1alpha1.PodDefault) bool {
		c := apimeta.FindStatusCondition(pd.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reasonRefused && strings.Contains(c.Message, "1 of 5 workloads are refused")
	})
	r.patch(fmt.Sprintf(`{"rollout":{"promotion":{"revision":%q}},"desc":"promoted"}`, second))
	r.await("the status of the promotion", func(pd *kubeflowv1alpha1.PodDefault) bool { return pd.Status.ObservedGeneration == pd.Generation })
	if state := r.get().Status.Rollout; state.Step != 1 || state.StableRevision == second {
		t.Errorf("it is promoted although pods are refused: %+v", state)
	}
	r.patch(fmt.Sprintf(`{"rollout":{"promotion":{"revision":%q,"force":true}}}`, second))
	r.await("the promotion that overrides the condition", func(pd *kubeflowv1alpha1.PodDefault) bool {
		return pd.Status.Rollout.StableRevision == second
	})
	r.delete()
}

// runPod creates a pod of a workload that carries a revision, as if the kubelet had run it.
func (r *rolling) runPod(name string, workload int, revision string, fails bool) {
	r.t.Helper()
	runPod(r.t, r.clients, metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Annotations: map[string]string{
		meta.Mark(r.name): "1", meta.RevisionsAnnotation: r.name + "@" + revision,
	}}, fmt.Sprintf("web-%d-5d8f", workload), fails)
}

// testRollout changes a PodDefault step by step for 500 workloads, with two replicas that take
// turns in leading and only have the rights of PolicyRules.
func testRollout(t *testing.T, r *rolling) {
	clients, client := r.clients, r.client
	pd := onServer(r.name, "use", "one")
	pd.Spec.Env[0].Name = "REVISION"
	create(t, client, pd)
	first := r.await("the first revision", func(pd *kubeflowv1alpha1.PodDefault) bool { return pd.Status.CurrentRevision != "" }).Status.CurrentRevision
	if n := count(r.newPods("one")); n != workloads {
		t.Fatalf("%d workloads get the first revision", n)
	}

	// The next revision is there already, as if the response to its creation had been lost.
	spec := r.get().Spec
	spec.Env[0].Value = "two"
	r.write(revision.New(r.owner(), metav1.NamespaceDefault, plan.Meaning(&spec), 2))

	// The rollout comes with the change.
	r.patch(`{` + variable("two") + `,"rollout":{"steps":[{"percent":10},{"percent":50},{"percent":100}]}}`)
	second := r.awaitStep(1).Status.CurrentRevision
	ten := r.newPods("two")
	if n := count(ten); n < 30 || n > 70 || count(r.newPods("one")) != workloads-n {
		t.Errorf("step 1: %d of %d workloads", n, workloads)
	}
	promote := func(step int) {
		r.patch(fmt.Sprintf(`{"rollout":{"promotion":{"revision":%q,"step":%d}}}`, second, step))
	}
	promote(2)
	r.awaitStep(2)
	fifty := r.newPods("two")
	if n := count(fifty); n < 210 || n > 290 {
		t.Errorf("step 2: %d of %d workloads", n, workloads)
	}
	for i, is := range ten {
		if is && !fifty[i] {
			t.Errorf("workload %d gets the stable revision again", i)
		}
	}

	// The leader ends in the middle of a step, and the other one goes on.
	started := r.get().Status.Rollout.StepStartTime
	r.replicas[0].leader.Lead(false)
	r.replicas[1].leader.Lead(true)
	if state := r.awaitStep(2); !state.Status.Rollout.StepStartTime.Equal(started) {
		t.Error("the step begins anew with another leader")
	}
	promote(3)
	r.awaitStep(3)
	if n := count(r.newPods("two")); n != workloads {
		t.Errorf("step 3: %d of %d workloads", n, workloads)
	}

	// Abort.
	r.patch(fmt.Sprintf(`{"rollout":{"abortedRevision":%q,"promotion":null}}`, second))
	r.awaitStep(0)
	if n := count(r.newPods("two")); n != 0 {
		t.Errorf("aborted: %d workloads", n)
	}

	// Pods that fail keep it in its step, although it is promoted.
	r.patch(`{"rollout":{"abortedRevision":null}}`)
	r.awaitStep(1)
	inStep, outside := -1, -1
	for i := range workloads {
		if ten[i] {
			inStep = i
		} else {
			outside = i
		}
	}
	// A pod that says so is not in the step.
	r.runPod("forged", outside, second, true)
	r.runPod("runs", inStep, second, false)
	r.await("the condition of the pods in the step", func(pd *kubeflowv1alpha1.PodDefault) bool {
		return apimeta.IsStatusConditionTrue(pd.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	})
	r.runPod("fails", inStep, second, true)
	r.patch(fmt.Sprintf(`{"rollout":{"promotion":{"revision":%q}}}`, second))
	failing := r.await("the condition", func(pd *kubeflowv1alpha1.PodDefault) bool {
		return apimeta.IsStatusConditionFalse(pd.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	})
	if failing.Status.Rollout.Step != 1 || count(r.newPods("two")) > 70 {
		t.Errorf("it is promoted although pods fail: %+v", failing.Status.Rollout)
	}
	if message := apimeta.FindStatusCondition(failing.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy).Message; !strings.Contains(message, "default/fails: container main: CrashLoopBackOff") {
		t.Errorf("message: %s", message)
	}
	if err := clients.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), "fails", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	done := r.await("the end", func(pd *kubeflowv1alpha1.PodDefault) bool {
		return pd.Status.Rollout.Step == 0 && pd.Status.Rollout.StableRevision == second
	})
	if apimeta.FindStatusCondition(done.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy) != nil {
		t.Error("the condition stays behind the rollout")
	}
	if n := count(r.newPods("two")); n != workloads {
		t.Errorf("at the end: %d of %d workloads", n, workloads)
	}

	// A rollback is a rollout of an earlier revision, which gets a new number.
	r.patch(`{` + variable("one") + `}`)
	if got := r.awaitStep(1).Status.CurrentRevision; got != first {
		t.Errorf("the revision is %s, want %s again", got, first)
	}
	if n := count(r.newPods("one")); n < 30 || n > 70 {
		t.Errorf("rollback: %d of %d workloads", n, workloads)
	}
	all := r.revisions()
	if len(all) != 2 || all[1].Name != first || all[1].Number != 3 {
		t.Errorf("revisions: %+v", all)
	}

	// Without a rollout a change applies at once. Of the history the limit stays.
	r.patch(`{"rollout":null,"revisionHistoryLimit":1}`)
	for _, value := range []string{"three", "four", "five"} {
		r.patch(`{` + variable(value) + `}`)
		r.await("revision "+value, func(pd *kubeflowv1alpha1.PodDefault) bool {
			return pd.Status.ObservedGeneration == pd.Generation && pd.Status.CurrentRevision == plan.RevisionOf(plan.Meaning(&pd.Spec))
		})
		if n := count(r.newPods(value)); n != workloads {
			t.Errorf("%s: %d of %d workloads", value, n, workloads)
		}
	}
	lab.Eventually(t.Context(), t, patience, "two revisions", func(context.Context) (bool, error) { return len(r.revisions()) == 2, nil })
	var last kubeflowv1alpha1.PodDefaultSpec
	if err := json.Unmarshal(r.revisions()[1].Meaning, &last); err != nil || last.Env[0].Value != "five" {
		t.Errorf("the last revision: %v %+v", err, last)
	}
	r.delete()
}
