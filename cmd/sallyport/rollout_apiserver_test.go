// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollouts"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// TestRevisionsOnARealAPIServer runs the commands for revisions and rollouts. It writes what
// the controller would, and has an API server of its own because the definitions are for all.
func TestRevisionsOnARealAPIServer(t *testing.T) {
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	kubeconfig := sallyporttest.Kubeconfig(t, config)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	const resource = kubeflowv1alpha1.PodDefaultResource
	pd := &kubeflowv1alpha1.PodDefault{}
	pd.APIVersion, pd.Kind, pd.Name = kubeflowv1alpha1.GroupVersion.String(), kubeflowv1alpha1.PodDefaultKind, "proxy"
	pd.Spec = kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"use": "true"}}, Desc: "text", ServiceAccountName: "two",
		Rollout: &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(10))}, {Percent: new(int32(50))}}},
	}
	if err := client.Post().Namespace("default").Resource(resource).Body(pd).Do(t.Context()).Into(pd); err != nil {
		t.Fatal(err)
	}
	get := func() *kubeflowv1alpha1.PodDefault {
		t.Helper()
		out := &kubeflowv1alpha1.PodDefault{}
		if err := client.Get().Namespace("default").Resource(resource).Name("proxy").Do(t.Context()).Into(out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	patch := func(format string, args ...any) {
		t.Helper()
		request := client.Patch(types.MergePatchType).Namespace("default").Resource(resource).Name("proxy").Body(fmt.Appendf(nil, format, args...))
		if strings.HasPrefix(format, `{"status"`) {
			request.SubResource("status")
		}
		if err := request.Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	owner := &metav1.OwnerReference{
		APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind, Name: pd.Name, UID: pd.UID, Controller: new(true),
	}
	names := map[string]string{}
	history := clients.Discovery().RESTClient()
	post := func(o *revision.Object) *revision.Object {
		t.Helper()
		body, err := json.Marshal(o)
		if err == nil {
			err = history.Post().AbsPath(revision.Path(o.Namespace)).Body(body).Do(t.Context()).Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for i, account := range []string{"one", "two"} {
		spec := pd.Spec.DeepCopy()
		spec.ServiceAccountName = account
		meaning := plan.Meaning(spec)
		names[account] = plan.RevisionOf(meaning)
		o := revision.New(owner, "default", meaning, int64(i+1))
		if account == "one" {
			o.Labels[revision.StableLabel] = "true"
			o.Rollout = &sallyportv1alpha1.RevisionRollout{Revision: plan.RevisionOf(plan.Meaning(&pd.Spec)), Step: 1}
		}
		post(o)
	}
	for rollout, want := range map[string]string{
		`{"steps":[{"percent":101}]}`:                       "spec.rollout.steps[0].percent: Invalid value: 101: ",
		`{"steps":[{"percent":-1}]}`:                        "spec.rollout.steps[0].percent: Invalid value: -1: ",
		`{"steps":[{"percent":"abc"}]}`:                     `spec.rollout.steps[0].percent: Invalid value: "string": `,
		`{"steps":[]}`:                                      "spec.rollout.steps: Invalid value: 0: ",
		`{"steps":[{"holdSeconds":-1}]}`:                    "spec.rollout.steps[0].holdSeconds: Invalid value: -1: ",
		`{"steps":[{"podSelector":{"matchLabels":["a"]}}]}`: `spec.rollout.steps[0].podSelector.matchLabels: Invalid value: "array": `,
		`{"steps":[{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}]}`: `.operator: Unsupported value: "Near": `,
		`{"by":"Node"}`:                           `spec.rollout.by: Unsupported value: "Node": `,
		`{"promotion":{"step":2}}`:                "spec.rollout.promotion.revision: Required value",
		`{"promotion":{"revision":"x","step":0}}`: "spec.rollout.promotion.step: Invalid value: 0: ",
	} {
		err := client.Patch(types.MergePatchType).Namespace("default").Resource(resource).Name("proxy").Body([]byte(`{"spec":{"rollout":` + rollout + `}}`)).Do(t.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rollout, err, want)
		}
	}
	on := func(want int, args ...string) string {
		t.Helper()
		got := sallyport(t, append(args, "--kubeconfig", kubeconfig, "-n", "default")...)
		if got.status != want {
			t.Fatalf("%q: %+v", args, got)
		}
		return got.stdout + got.stderr
	}
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in:\n%s", want, text)
			}
		}
	}
	short := func(account string) string { return revision.Short(names[account]) }
	if got := on(0, "rollout", "history", "poddefault/proxy"); strings.Contains(got, names["one"]) {
		t.Errorf("whole names:\n%s", got)
	}
	has(on(0, "rollout", "history", "poddefault/proxy"), short("one"), "stable\n", short("two"), "step 1 of 2\n")
	has(on(0, "rollout", "history", "proxy", "--revision", names["one"][:7]), "serviceAccountName: one\n")
	has(on(0, "rollout", "history", "proxy", "--revision", "1"), "serviceAccountName: one\n")
	has(on(0, "rollout", "diff", "poddefault/proxy", "--revision", names["one"]), "\n-  serviceAccountName: one\n+  serviceAccountName: two\n")
	var listed rolloutHistory
	if err := json.Unmarshal([]byte(on(0, "rollout", "history", "proxy", "-o", "json")), &listed); err != nil {
		t.Error(err)
	} else if r := listed.Revisions; len(r) != 2 || r[0].Name != names["one"] || !r[0].Stable || r[0].Current || r[0].Spec != nil || r[1].Name != names["two"] || !r[1].Current || listed.Rollout.Step != 1 {
		t.Errorf("%+v", listed)
	}
	has(on(0, "rollout", "history", "proxy", "--revision", "1", "-o", "yaml"), "name: "+names["one"]+"\n", "serviceAccountName: one\n")
	has(on(0, "rollout", "diff", "proxy", "--revision", "1", "-o", "yaml"), "from: "+names["one"]+"\n", "to: "+names["two"]+"\n", "-  serviceAccountName: one\n")
	has(on(1, "rollout", "history", "proxy", "--revision", "7"), "has no revision 7; it has 2 ("+short("two")+"), 1 ("+short("one")+")")
	has(on(1, "rollout", "diff", "proxy", "--revision", "0123456789"), "has no revision 0123456789; it has 2 (")
	has(on(1, "rollout", "undo", "proxy", "--to-revision", "3"), "has no revision 3; it has 2 (")
	has(on(1, "rollout", "undo", "proxy", "--to-revision", "one"), "has no revision one; it has 2 (")
	has(on(1, "rollout", "history", "poddefault/none"), "there is no PodDefault none in the namespace default")
	has(on(1, "rollout", "history", "pod/proxy"), "expected poddefault/NAME or clusterpoddefault/NAME")
	has(on(1, "rollout", "abort", "clusterpoddefault/none"), "there is no ClusterPodDefault none")
	has(on(0, "rollout", "diff", "poddefault/proxy"), "\n-  serviceAccountName: one\n+  serviceAccountName: two\n")
	has(on(0, "rollout", "status", "poddefault/proxy"), "PodDefault default/proxy: revision "+short("two")+": step 1 of 2; other new pods get revision "+short("one")+"\n")
	has(on(0, "rollout", "status", "poddefault/proxy", "-o", "yaml"), "object: PodDefault default/proxy\n", "stableRevision: "+names["one"]+"\n", "step: 1\n", "steps: 2\n")
	has(on(1, "rollout", "status", "poddefault/proxy", "--watch", "--timeout", "1s"), "the rollout has not ended: PodDefault default/proxy: revision "+short("two"))
	has(on(1, "rollout", "status", "poddefault/proxy", "--timeout", "1s"), "--timeout requires --watch")

	has(on(0, "rollout", "promote", "poddefault/proxy", "--dry-run"), "promoted to step 2 (dry run)")
	if get().Spec.Rollout.Promotion != nil {
		t.Error("a dry run writes")
	}
	has(on(0, "rollout", "promote", "poddefault/proxy"), "promoted to step 2\n")
	if p := get().Spec.Rollout.Promotion; p == nil || p.Revision != names["two"] || p.Step == nil || *p.Step != 2 {
		t.Errorf("promotion: %+v", p)
	}
	has(on(0, "rollout", "promote", "poddefault/proxy", "--full"), "promoted to all new pods\n")
	if p := get().Spec.Rollout.Promotion; p == nil || p.Revision != names["two"] || p.Step != nil {
		t.Errorf("full promotion: %+v", p)
	}
	c, err := cluster.New(config, "default")
	if err != nil {
		t.Fatal(err)
	}
	// Somebody who may write the status of PodDefaults cannot hide a rollout, nor pretend one.
	now := func() (shown string) {
		t.Helper()
		state, err := rollouts.Read(t.Context(), c, "proxy", false, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range state.Revisions {
			shown += r.Title() + "\n"
		}
		return shown + fmt.Sprintln(state.Current, state.Stable, state.Step, state.Aborted, state.InProgress()) + on(0, "rollout", "status", "poddefault/proxy")
	}
	genuine := now()
	has(genuine, short("two")+" "+short("one"), "1 false true", "step 1 of 2")
	for _, status := range []string{
		fmt.Sprintf(`{"currentRevision":%q,"rollout":null}`, names["one"]),
		fmt.Sprintf(`{"currentRevision":%q,"rollout":{"stableRevision":%q,"step":2}}`, names["two"], strings.Repeat("ab", 16)),
		fmt.Sprintf(`{"currentRevision":%q,"rollout":{"stableRevision":%q,"step":0}}`, strings.Repeat("cd", 16), names["two"]),
	} {
		if patch(`{"status":%s}`, status); now() != genuine {
			t.Errorf("status %s: shown is\n%s\nand was\n%s", status, now(), genuine)
		}
	}
	// The controller may write the status between the read and the write, and nobody the spec.
	read, err := injection.ReadRevised(t.Context(), c, "proxy", false)
	if err != nil {
		t.Fatal(err)
	}
	patch(`{"status":{"observedGeneration":7}}`)
	if step, _, err := read.Promote(t.Context(), false, true); err != nil || step != 2 {
		t.Errorf("promoted to %d, %v", step, err)
	}
	patch(`{"spec":{"revisionHistoryLimit":3}}`)
	if err := read.Abort(t.Context()); err == nil || !strings.Contains(err.Error(), "has changed in between: try again") || get().Spec.Rollout.AbortedRevision != "" {
		t.Errorf("abort after a change: %v", err)
	}
	condition, err := json.Marshal([]metav1.Condition{{
		Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionFalse, Reason: "PodsFail", Message: "3 of 4 fail", LastTransitionTime: metav1.Now(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	patch(`{"status":{"conditions":%s}}`, condition)
	has(on(1, "rollout", "promote", "poddefault/proxy"), "is not promoted while RolloutHealthy is False: 3 of 4 fail. With --force it is")
	has(on(0, "rollout", "promote", "poddefault/proxy", "--force"), "promoted to step 2, which overrides RolloutHealthy: 3 of 4 fail\n")
	if p := get().Spec.Rollout.Promotion; p == nil || !p.Force {
		t.Errorf("forced promotion: %+v", p)
	}
	has(on(0, "rollout", "abort", "poddefault/proxy"), "rollout aborted\n")
	if got := get().Spec.Rollout; got.AbortedRevision != names["two"] || got.Promotion != nil {
		t.Errorf("aborted: %+v", got)
	}
	has(on(0, "rollout", "history", "poddefault/proxy"), "aborted\n", "RolloutHealthy: False: 3 of 4 fail")
	has(on(2, "rollout", "status", "poddefault/proxy", "--watch"), "aborted; other new pods get revision "+short("one"), "; RolloutHealthy is False: 3 of 4 fail\n")
	has(on(1, "rollout", "promote", "poddefault/proxy"), "is aborted")

	has(on(0, "rollout", "undo", "poddefault/proxy"), "rolled back to revision 1; it is the stable revision, so all new pods get it, and the rollout ends\n")
	if got := get(); got.Spec.ServiceAccountName != "one" || got.Spec.Desc != "text" || len(got.Spec.Rollout.Steps) != 2 ||
		got.Spec.Rollout.Promotion != nil || got.Spec.Rollout.AbortedRevision != "" {
		t.Errorf("rolled back: %+v", got.Spec)
	}
	has(on(0, "rollout", "undo", "poddefault/proxy"), "rolled back to revision 2; new pods outside of step 1 of 2 still get revision 1 ("+short("one")+"): complete the steps with 'rollout promote --full'\n")
	patch(`{"spec":{"serviceAccountName":"one"}}`)
	has(on(0, "rollout", "undo", "poddefault/proxy", "--to-revision", "2", "--now"), "rolled back to revision 2; all new pods get it once the server has completed its rollout")
	if p := get().Spec.Rollout.Promotion; p == nil || p.Revision != names["two"] || p.Step != nil {
		t.Errorf("promotion of a rollback: %+v", p)
	}
	patch(`{"spec":{"serviceAccountName":"one"}}`)
	has(on(0, "rollout", "undo", "poddefault/proxy", "--to-revision", "1"), "is at revision 1 already")
	has(on(1, "rollout", "abort", "poddefault/proxy"), "no rollout is in progress")
	patch(`{"spec":{"rollout":null}}`)
	has(on(1, "rollout", "promote", "poddefault/proxy"), "has no spec.rollout")

	// What only claims to be a revision is told, and not used.
	forged := revision.New(owner, "default", []byte(`{"serviceAccountName":"evil"}`), 99)
	forged.Labels[revision.Label], forged.Name = strings.Repeat("ab", 16), "proxy-"+strings.Repeat("ab", 16)
	post(forged)
	got := sallyport(t, "rollout", "history", "proxy", "--kubeconfig", kubeconfig, "-n", "default")
	has(got.stderr, "PodDefaultRevision default/proxy-abab", "is ignored: its spec is that of revision ")
	if strings.Contains(got.stdout, "99") {
		t.Errorf("a forged revision is listed:\n%s", got.stdout)
	}
	has(on(1, "rollout", "undo", "proxy", "--to-revision", "99"), "has no revision 99; it has 2 (")
	// Two names with the same first digits.
	first, second := sameBeginning(t, minTyped)
	for i, meaning := range [][]byte{first, second} {
		post(revision.New(owner, "default", meaning, int64(i+3)))
	}
	has(on(1, "rollout", "undo", "proxy", "--to-revision", plan.RevisionOf(first)[:minTyped]), "has several revisions whose names begin with ")
}

// minTyped is the least number of digits of a name that a user may type.
const minTyped = 6

// sameBeginning returns the meanings of two revisions whose names have the same first digits.
func sameBeginning(t *testing.T, digits int) (first, second []byte) {
	t.Helper()
	seen := map[string][]byte{}
	for i := range 1 << 20 {
		meaning := fmt.Appendf(nil, `{"selector":{},"serviceAccountName":"a%d"}`, i)
		name := plan.RevisionOf(meaning)[:digits]
		if other := seen[name]; other != nil {
			return other, meaning
		}
		seen[name] = meaning
	}
	t.Fatal("no two names begin with the same digits")
	return nil, nil
}
