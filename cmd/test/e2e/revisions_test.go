// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// A historian is a server that records revisions, with the rights that it prints for itself.
type historian struct {
	*env
	*plugin
	t       *testing.T
	name    string // of a namespace
	history *revision.Client
}

func newHistorian(t *testing.T, e *env, name string) *historian {
	t.Helper()
	e.namespace(t, name)
	clients, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	e.serve(t, name, "--kubeconfig", e.serviceAccount(t, name), "--controllers", "poddefault-status")
	return &historian{env: e, plugin: newPlugin(t, e), t: t, name: name, history: revision.NewClient(clients.Discovery().RESTClient())}
}

// revisions returns the revisions that claim to be of an owner.
func (r *historian) revisions(namespace, owner string) (all []*revision.Record) {
	r.t.Helper()
	if err := r.history.EachOf(r.t.Context(), namespace, owner, func(one *revision.Record) { all = append(all, one) }); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// await waits until an object has these revisions, the latest first.
func (r *historian) await(owner client.Object, names ...string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprint("the revisions ", names), func(context.Context) (bool, error) {
		usable, _ := revision.Of(revision.Owner{Namespace: owner.GetNamespace(), UID: owner.GetUID()}, r.revisions(owner.GetNamespace(), owner.GetName()))
		var got []string
		for _, one := range usable {
			got = append(got, one.Name)
		}
		if !slices.Equal(got, names) {
			return false, fmt.Errorf("there are %v", usable)
		}
		return true, nil
	})
}

// got returns the value of the variable that a new pod gets, and how many containers it has.
func (r *historian) got(labels map[string]string) string {
	r.t.Helper()
	pod := simplePod(r.name, "probe")
	for key, value := range labels {
		pod.Labels[key] = value
	}
	if err := r.client.Create(r.t.Context(), pod, client.DryRunAll); err != nil {
		r.t.Fatal(err)
	}
	out := fmt.Sprint(len(pod.Spec.Containers))
	for _, v := range pod.Spec.Containers[0].Env {
		out += " " + v.Value
	}
	if account := pod.Spec.ServiceAccountName; account != "" && account != "default" {
		out += " as " + account
	}
	return out
}

func (r *historian) awaitPod(want string) {
	r.t.Helper()
	eventually(r.t, "new pods to get "+want, func(context.Context) (bool, error) {
		if got := r.got(nil); got != want {
			return false, fmt.Errorf("they get %s", got)
		}
		return true, nil
	})
}

func (r *historian) patch(object client.Object, spec string) {
	r.t.Helper()
	if err := r.client.Patch(r.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))); err != nil {
		r.t.Fatal(err)
	}
}

func reference(kind string, of client.Object) *metav1.OwnerReference {
	group := kubeflowv1alpha1.GroupVersion.String()
	if kind == sallyportv1alpha1.ClusterPodDefaultKind {
		group = sallyportv1alpha1.GroupVersion.String()
	}
	return &metav1.OwnerReference{APIVersion: group, Kind: kind, Name: of.GetName(), UID: of.GetUID(), Controller: new(true)}
}

// evil is the meaning of a spec that an attacker wants pods to get.
const evil = `{"selector":{},"serviceAccountName":"admin","sidecars":[{"image":"spy","name":"spy"}]}`

func stableObject(o *revision.Object) *revision.Object {
	o.Labels[revision.StableLabel] = "true"
	return o
}

// testForgedRevisions has the owner of a namespace, who may do everything in it, forge revisions
// of a ClusterPodDefault.
func testForgedRevisions(t *testing.T, e *env) {
	const name, tenant = "forged-revisions", "owner-of-a-namespace"
	r := newHistorian(t, e, name)
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	e.grant(t, name, tenant, all)
	user := e.user(t, tenant)
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cpd.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
	cpd.Spec.Selector.MatchLabels, cpd.Spec.Env = map[string]string{"use": "true"}, []corev1.EnvVar{{Name: "FROM_PODDEFAULT", Value: "one"}}
	cpd.Spec.RevisionHistoryLimit = new(int32(1))
	e.createInCluster(t, cpd)
	first := plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec))
	r.await(cpd, first)
	r.patch(cpd, `{"env":[{"name":"FROM_PODDEFAULT","value":"two"}]}`)
	second := plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec))
	r.await(cpd, second, first)

	// In the ways of before: revisions in a namespace, also as ControllerRevisions.
	old := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "clusterpoddefault-" + name + "-0123456789", OwnerReferences: []metav1.OwnerReference{*reference("ClusterPodDefault", cpd)},
			Labels: map[string]string{"sallyport.io/clusterpoddefault": name, revision.Label: "0123456789", revision.OwnerLabel: name},
		},
		Revision: 99, Data: runtime.RawExtension{Raw: []byte(`{"spec":` + evil + `}`)},
	}
	forged := []client.Object{old}
	for i, one := range []*revision.Object{ // the name may have a suffix
		revision.New(reference("ClusterPodDefault", cpd), name, []byte(evil), 99),
		revision.New(reference("PodDefault", cpd), name, []byte(evil), 99),
		stableObject(revision.New(reference("PodDefault", cpd), name, []byte(evil), 100)),
		stableObject(revision.New(reference("PodDefault", cpd), name, plan.ClusterMeaning(&cpd.Spec), 2)), // same number and name
	} {
		if i == 1 || i == 2 {
			one.Name += fmt.Sprintf("-0000%d", i)
		}
		forged = append(forged, one)
	}
	for _, one := range forged {
		if err := user.Create(t.Context(), one.DeepCopyObject().(client.Object)); err != nil {
			t.Fatalf("%s: %v", one.GetName(), err)
		}
	}
	clusterWide := &sallyportv1alpha1.ClusterPodDefaultRevision{}
	made := stableObject(revision.New(reference("ClusterPodDefault", cpd), "", []byte(evil), 99))
	clusterWide.ObjectMeta, clusterWide.RevisionContent = made.ObjectMeta, made.RevisionContent
	if err := user.Create(t.Context(), clusterWide); !apierrors.IsForbidden(err) {
		t.Errorf("a ClusterPodDefaultRevision of a tenant: %v", err)
	}

	// Doctor names what a revision of a namespace can never be: one of a ClusterPodDefault.
	_, stdout, _ := e.look(t, "doctor", "-o", "json", "--window=0s", "--kubeconfig", e.kubeconfig, "--configuration-name", name)
	expectLine(t, doctorOf(t, stdout), "revisions", "fix: 1 revision is ignored, because its content does not match its name: PodDefaultRevision "+name+"/"+forged[1].GetName()+": no PodDefault owns it")
	if remedy := "kubectl delete poddefaultrevisions.sallyport.io -n " + name + " " + forged[1].GetName(); !strings.Contains(stdout, remedy) {
		t.Errorf("doctor does not say %q:\n%s", remedy, stdout)
	}

	object := "clusterpoddefault/" + name
	out := r.says(t, 0, []string{"rollout", "history", object}, "", revision.Short(first), revision.Short(second))
	if strings.Contains(out, "99") || strings.Count(out, "\n") != 3 {
		t.Errorf("history shows what a tenant forged:\n%s", out)
	}
	r.says(t, 1, []string{"rollout", "undo", object, "--to-revision", "99"}, "", "has no revision 99; it has 2 ("+revision.Short(second)+"), 1 ("+revision.Short(first)+")")
	r.says(t, 0, []string{"rollout", "undo", object, "--to-revision", "2"}, "", "is at revision 2 already")
	r.says(t, 0, []string{"rollout", "undo", object}, "", "rolled back to revision 1; all new pods get it")
	r.awaitPod("1 one")
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(cpd), cpd); err != nil || plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec)) != first {
		t.Errorf("after a rollback: %v %s", err, toJSON(t, cpd.Spec))
	}
	r.await(cpd, first, second)

	// A rollout starts from the recorded revision, and pruning deletes nothing of the tenant.
	r.patch(cpd, `{"env":[{"name":"FROM_PODDEFAULT","value":"three"}],"rollout":{"steps":[{"podSelector":{"matchLabels":{"canary":"true"}}}]}}`)
	third := plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec))
	r.await(cpd, third, first, second)
	eventually(t, "the first step", func(context.Context) (bool, error) {
		return r.got(map[string]string{"canary": "true"}) == "1 three", nil
	})
	r.awaitPod("1 one")
	r.says(t, 0, []string{"rollout", "promote", object, "--full"}, "", "promoted to all new pods")
	r.awaitPod("1 three")
	r.await(cpd, third, first)
	for _, one := range forged {
		if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			t.Errorf("what belongs to another is gone: %v", err)
		}
	}
}

// testSpoiledRevisions writes revisions whose content is not what their names say, and takes the
// names of others, as a collision of shorter names or somebody who may write them would.
func testSpoiledRevisions(t *testing.T, e *env) {
	const name = "spoiled-revisions"
	r := newHistorian(t, e, name)
	pd := envPodDefault(name, "env")
	pd.Spec.Env[0].Value = "one"
	e.create(t, pd)
	first := plan.RevisionOf(plan.Meaning(&pd.Spec))
	r.await(pd, first)

	// The names of the next revisions are taken: by other content, and by a deleted object.
	next := func(value string) []byte {
		spec := pd.Spec.DeepCopy()
		spec.Env[0].Value = value
		return plan.Meaning(spec)
	}
	wrong := stableObject(revision.New(reference("PodDefault", pd), name, next("two"), 50))
	wrong.Spec.Raw = []byte(evil)
	gone := pd.DeepCopy()
	gone.UID = "00000000-0000-4000-8000-000000000000"
	stale := stableObject(revision.New(reference("PodDefault", gone), name, next("three"), 60))
	e.create(t, wrong)
	e.create(t, stale)

	r.patch(pd, `{"env":[{"name":"FROM_PODDEFAULT","value":"two"}],"rollout":{"steps":[{"podSelector":{"matchLabels":{"canary":"true"}}}]}}`)
	second := plan.RevisionOf(next("two"))
	r.await(pd, second, first)
	r.awaitPod("1 one")
	eventually(t, "the first step", func(context.Context) (bool, error) {
		return r.got(map[string]string{"canary": "true"}) == "1 two", nil
	})
	e.awaitEvent(t, name, "PodDefault", "env", "RevisionIgnored", wrong.Name, "its spec is that of revision")
	_, stderr, status := r.run(t, "", "sallyport", "rollout", "history", "poddefault/env", "-n", name)
	if status != 0 || !strings.Contains(stderr, wrong.Name+" is ignored: its spec is that of revision") || strings.Contains(stderr, stale.Name) {
		t.Errorf("history, status %d: %s", status, stderr)
	}
	doctor := []string{"--kubeconfig", e.kubeconfig, "--configuration-name", name}
	expectLine(t, e.doctorLinesAnyStatus(t, doctor...), "revisions", "fix: 1 revision is ignored, because its content does not match its name: PodDefaultRevision "+name+"/"+wrong.Name+": its spec is that of revision")
	doctor[1] = e.userWith(t, name+"-reader", rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	expectLine(t, e.doctorLinesAnyStatus(t, doctor...), "revisions", "skip: no permission to list poddefaultrevisions")
	r.patch(pd, `{"env":[{"name":"FROM_PODDEFAULT","value":"three"}]}`)
	third := plan.RevisionOf(next("three"))
	r.await(pd, third, second, first)
	eventually(t, "the first step", func(context.Context) (bool, error) {
		return r.got(map[string]string{"canary": "true"}) == "1 three", nil
	})
	r.awaitPod("1 one")

	// Somebody edits the stable revision, and deletes it: it is recorded again.
	for what, spoil := range map[string]func(*revision.Object) error{
		"edited": func(o *revision.Object) error {
			return r.client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"serviceAccountName":"admin"}}`)))
		},
		"deleted": func(o *revision.Object) error { return r.client.Delete(t.Context(), o) },
	} {
		usable, _ := revision.Of(revision.Owner{Namespace: name, UID: pd.UID}, r.revisions(name, "env"))
		stable := revision.StableAmong(usable)
		o := &revision.Object{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: stable.Identity().Name}}
		if err := spoil(o); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the stable revision that was "+what+" to be recorded again", func(context.Context) (bool, error) {
			if got := r.got(nil); got != "1 one" {
				t.Errorf("%s: pods get %s", what, got)
			}
			usable, _ := revision.Of(revision.Owner{Namespace: name, UID: pd.UID}, r.revisions(name, "env"))
			again := revision.StableAmong(usable)
			return again != nil && again.Name == first && again.Identity().UID != stable.Identity().UID, nil
		})
	}
	eventually(t, "the first step again", func(context.Context) (bool, error) {
		return r.got(map[string]string{"canary": "true"}) == "1 three", nil
	})

	// Deleted and created again: nothing collects garbage here.
	if err := e.client.Delete(t.Context(), pd); err != nil {
		t.Fatal(err)
	}
	again := envPodDefault(name, "env")
	again.Spec.Env[0].Value = "one"
	e.create(t, again)
	r.await(again, first)
	r.patch(again, `{"env":[{"name":"FROM_PODDEFAULT","value":"two"}],"rollout":{"steps":[{"podSelector":{"matchLabels":{"canary":"true"}}}]}}`)
	r.await(again, second, first)
	r.awaitPod("1 one")
	for _, o := range []*revision.Object{wrong, stale} {
		if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Errorf("what belongs to another is gone: %v", err)
		}
	}
}

// testStatusesDoNothing has users who may write statuses, and nothing else, try to give pods
// something by them.
func testStatusesDoNothing(t *testing.T, e *env) {
	const name = "statuses-do-nothing"
	r := newHistorian(t, e, name)
	statuses := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource + "/status"}, Verbs: []string{"get", "update", "patch"}}
	}
	e.grant(t, name, "status-of-poddefaults", statuses(kubeflowv1alpha1.GroupName, "poddefaults"))
	e.grant(t, "", "status-of-clusterpoddefaults", statuses(sallyportv1alpha1.GroupName, "clusterpoddefaults"))
	pd := envPodDefault(name, "env")
	pd.Spec.Env[0].Value = "one"
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cpd.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
	cpd.Spec.Selector.MatchLabels, cpd.Spec.Env = map[string]string{"use": "true"}, []corev1.EnvVar{{Name: "FROM_CLUSTER", Value: "one"}}
	e.create(t, pd)
	e.createInCluster(t, cpd)
	first, firstOfCluster := plan.RevisionOf(plan.Meaning(&pd.Spec)), plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec))
	r.await(pd, first)
	r.await(cpd, firstOfCluster)
	const rollout = `"rollout":{"paused":true,"steps":[{"podSelector":{"matchLabels":{"canary":"true"}}},{"percent":100}]}`
	r.patch(pd, `{"env":[{"name":"FROM_PODDEFAULT","value":"two"}],`+rollout+`}`)
	r.patch(cpd, `{"env":[{"name":"FROM_CLUSTER","value":"two"}],`+rollout+`}`)
	second, secondOfCluster := plan.RevisionOf(plan.Meaning(&pd.Spec)), plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec))
	canary := map[string]string{"canary": "true"}
	eventually(t, "the first steps", func(context.Context) (bool, error) {
		return r.got(canary) == "1 two two" && r.got(nil) == "1 one one", nil
	})
	for _, target := range []struct {
		user          string
		object        client.Object
		first, second string
	}{{"status-of-poddefaults", pd, first, second}, {"status-of-clusterpoddefaults", cpd, firstOfCluster, secondOfCluster}} {
		user := e.user(t, target.user)
		if err := user.Patch(t.Context(), target.object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desc":"x"}}`))); !apierrors.IsForbidden(err) {
			t.Fatalf("%s may write more than statuses: %v", target.user, err)
		}
		for what, status := range map[string]string{
			"a stable spec":               `{"currentRevision":"` + target.second + `","rollout":{"stableRevision":"` + plan.RevisionOf([]byte(evil)) + `","stableSpec":` + evil + `,"step":1,"paused":true}}`,
			"a stable spec, by its place": `{"paused":true,"stableSpec":` + evil + `,"spec":` + evil + `}`,
			"the revisions swapped":       `{"currentRevision":"` + target.first + `","rollout":{"stableRevision":"` + target.second + `","step":0}}`,
			"the last step":               `{"currentRevision":"` + target.second + `","rollout":{"stableRevision":"` + target.first + `","step":2}}`,
			"no rollout":                  `{"currentRevision":"","rollout":null}`,
			"that it is invalid":          `{"conditions":[{"type":"Accepted","status":"False","reason":"Invalid","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
			"that its pods fail":          `{"conditions":[{"type":"RolloutHealthy","status":"False","reason":"PodsRefused","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
		} {
			written := target.object.DeepCopyObject().(client.Object)
			if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(written), written); err != nil {
				t.Fatal(err)
			}
			before := written.GetResourceVersion()
			if err := user.Status().Patch(t.Context(), written, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			// Both before and after the server has corrected it.
			version := written.GetResourceVersion()
			eventually(t, "the status with "+what+" to be corrected", func(ctx context.Context) (bool, error) {
				if got, of := r.got(canary), r.got(nil); got != "1 two two" || of != "1 one one" {
					t.Errorf("%s: pods get %q and, as canaries, %q", what, of, got)
				}
				err := e.client.Get(ctx, client.ObjectKeyFromObject(written), written)
				return err == nil && (written.GetResourceVersion() != version || version == before), err // or nothing of it was stored
			})
		}
	}
	r.says(t, 0, []string{"rollout", "promote", "poddefault/env", "-n", name, "--full"}, "", "promoted to all new pods")
	r.says(t, 0, []string{"rollout", "promote", "clusterpoddefault/" + name, "--full"}, "", "promoted to all new pods")
	r.awaitPod("1 two two")
}

// testLargestRollout records and rolls out specs that are almost too large for that, and has
// larger ones refused when they are written.
func testLargestRollout(t *testing.T, e *env) {
	const name = "largest-rollout"
	r := newHistorian(t, e, name)
	e.awaitJudge(t, name)
	long := strings.Repeat(strings.Repeat("x", 60)+".", 4) + "a/" + strings.Repeat("x", 55) // with four digits, the longest key
	for what, fill := range map[string]func(spec *kubeflowv1alpha1.PodDefaultSpec, n int){
		"text": func(spec *kubeflowv1alpha1.PodDefaultSpec, n int) {
			spec.Env = append(spec.Env, corev1.EnvVar{Name: "TEXT", Value: strings.Repeat("x", n)})
		},
		"text that is escaped": func(spec *kubeflowv1alpha1.PodDefaultSpec, n int) {
			spec.Env = append(spec.Env, corev1.EnvVar{Name: "TEXT", Value: strings.Repeat("<", n)})
		},
		"keys that are repeated": func(spec *kubeflowv1alpha1.PodDefaultSpec, n int) {
			spec.Annotations = map[string]string{"a": strings.Repeat("x", 200_000)}
			for i := range n / len(long) {
				spec.Annotations[fmt.Sprint(long, 1000+i)] = ""
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			object := func(name string, n int) *kubeflowv1alpha1.PodDefault {
				pd := envPodDefault(r.name, name)
				pd.Spec.Selector.MatchLabels["large"] = "true"
				pd.Spec.Env[0].Value = "one"
				pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}}}}
				fill(&pd.Spec, n)
				return pd
			}
			// The largest size that is not refused, as a dry run decides: etcd is not asked.
			low, high := 0, 1<<20
			for high-low > 1000 {
				middle := (low + high) / 2
				if err := e.client.Create(t.Context(), object("large", middle), client.DryRunAll); err == nil {
					low = middle
				} else if high = middle; !strings.Contains(err.Error(), "spec") && !apierrors.IsRequestEntityTooLargeError(err) {
					t.Fatalf("refused without a reason: %.500v", err)
				}
			}
			pd := object("large", low)
			e.create(t, pd)
			first := plan.RevisionOf(plan.Meaning(&pd.Spec))
			r.await(pd, first)
			e.change(t, pd, func() { pd.Spec.Env[0].Value = "two" })
			r.await(pd, plan.RevisionOf(plan.Meaning(&pd.Spec)), first)
			t.Logf("%d bytes of JSON", len(toJSON(t, pd.Spec)))
			if err := e.client.Delete(t.Context(), pd); err != nil {
				t.Fatal(err)
			}
		})
	}
}
