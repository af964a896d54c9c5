// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// drifted is what drift prints as JSON.
type drifted struct {
	Pods        int
	PodDefaults []struct {
		Name      string
		Exists    bool
		Revision  string
		Pods      map[string]int
		Revisions map[string]int
	}
	Workloads []struct {
		Namespace, Kind, Name string
		Pods, Drifted         int
		Missed                []string
		PodDefaults           map[string]map[string]int
		Restart               []string
	}
}

func (p *plugin) drift(t *testing.T, status int, args ...string) drifted {
	t.Helper()
	var out drifted
	stdout := p.says(t, status, append([]string{"drift", "-o", "json"}, args...), "")
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	return out
}

// countByContent counts the running pods of a namespace without looking at annotations: by
// the value of the variable that the PodDefault sets, and by the label that selects it.
func (e *env) countByContent(t *testing.T, namespace, value string) map[string]int {
	t.Helper()
	var pods corev1.PodList
	if err := e.client.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil {
			continue
		}
		has := ""
		for _, v := range pod.Spec.Containers[0].Env {
			if v.Name == "FROM_PODDEFAULT" {
				has = v.Value
			}
		}
		selected := pod.Labels["use"] == "true"
		switch {
		case has == value && selected:
			out["current"]++
		case has != "" && selected:
			out["outdated"]++
		case has != "":
			out["surplus"]++
		case selected:
			out["missing"]++
		}
	}
	return out
}

// testDrift compares what drift and the status say about pods of real controllers with a
// count of what is in the pods.
func testDrift(t *testing.T, e *env, of string, args ...string) {
	const name = "drift"
	s := e.serve(t, of, args...)
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e": of}}})
	runs := func(app string, want int) {
		t.Helper()
		eventuallyWithin(t, soon, "pods of "+app+" to run", func(ctx context.Context) (bool, error) {
			var pods corev1.PodList
			err := e.client.List(ctx, &pods, client.InNamespace(name), client.MatchingLabels{"app": app})
			n := 0
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					n++
				}
			}
			return n == want, err
		})
	}
	p := newPlugin(t, e)
	if got := p.drift(t, 0, "-n", name); got.Pods != 0 || len(got.PodDefaults) != 0 {
		t.Errorf("an empty namespace: %+v", got)
	}

	e.create(t, deployment(name, "early", "1", "")) // before the PodDefault
	runs("early", 2)
	pd := envPodDefault(name, "env")
	e.createSoon(t, pd, simplePod(name, "probe"), meta.Mark("env"))
	web := deployment(name, "web", "1", "")
	e.create(t, web)
	e.create(t, statefulSet(name, "db", ""))
	e.create(t, deployment(name, "other", "", ""))
	alone := simplePod(name, "alone")
	alone.Spec.NodeName = playedNode
	e.create(t, alone)
	ends := template("train", "1", "") // kwok ends pods of Jobs
	ends.Spec.RestartPolicy = corev1.RestartPolicyNever
	e.create(t, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "train"}, Spec: batchv1.JobSpec{Template: ends}})
	for _, app := range []string{"web", "db", "other"} {
		runs(app, 2)
	}
	eventuallyWithin(t, soon, "the pod of the Job to end", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := e.client.List(ctx, &pods, client.InNamespace(name), client.MatchingLabels{"app": "train"})
		return len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodSucceeded, err
	})
	e.agree(t, p, name, "1")

	// A change: pods from now on get another value, the others are outdated.
	e.change(t, pd, func() { pd.Spec.Env[0].Value = "2" })
	eventually(t, "the change to apply", func(ctx context.Context) (bool, error) {
		probe := simplePod(name, "probe")
		err := e.client.Create(ctx, probe, client.DryRunAll)
		return err == nil && probe.Spec.Containers[0].Env[0].Value == "2", err
	})
	e.change(t, web, func() { web.Spec.Replicas = new(int32(3)) })
	runs("web", 3)
	// A pod that loses the label has what is not for it any more.
	var pods corev1.PodList
	if err := e.client.List(t.Context(), &pods, client.InNamespace(name), client.MatchingLabels{"statefulset.kubernetes.io/pod-name": "db-0"}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	e.change(t, &pods.Items[0], func() { delete(pods.Items[0].Labels, "use") })
	e.agree(t, p, name, "2")

	got := p.drift(t, 2, "-n", name, "poddefault/env")
	for _, w := range got.Workloads {
		switch w.Kind + "/" + w.Name {
		case "Deployment/web":
			if w.Pods != 3 || w.Drifted != 2 || len(w.Restart) != 1 || w.Restart[0] != "deployment/web" {
				t.Errorf("the Deployment: %+v", w)
			}
		case "Deployment/other":
			t.Errorf("a workload that nothing selects: %+v", w)
		case "StatefulSet/db":
			if diff := cmp.Diff(map[string]int{"outdated": 1, "surplus": 1}, w.PodDefaults["PodDefault "+name+"/env"]); diff != "" {
				t.Errorf("the StatefulSet (-want +got):\n%s", diff)
			}
		}
	}

	// The controller writes the same into the status: counts alone once a minute, and at once when it
	// has just started.
	s.stop(t)
	e.serve(t, of, args...)
	eventuallyWithin(t, soon, "the status to have the counts", func(ctx context.Context) (bool, error) {
		var stored kubeflowv1alpha1.PodDefault
		if err := e.client.Get(ctx, client.ObjectKeyFromObject(pd), &stored); err != nil || stored.Status.Pods == nil {
			return false, err
		}
		counts := map[string]int{}
		for state, n := range map[string]int32{"current": stored.Status.Pods.Current, "outdated": stored.Status.Pods.Outdated, "missing": stored.Status.Pods.Missing + stored.Status.Pods.Missed, "surplus": stored.Status.Pods.Surplus, "unknown": stored.Status.Pods.Unknown} {
			if n > 0 {
				counts[state] = int(n)
			}
		}
		return cmp.Equal(counts, e.countByContent(t, name, "2")), nil
	})

	// Nothing restarts by itself, in a dry run, or without a yes.
	before := e.restarts(t, name)
	p.says(t, 2, []string{"rollout", "restart", "-n", name, "--dry-run"}, "", "drift deployment/web would be restarted (dry run)", "not restarted", "drift pod/alone")
	p.says(t, 2, []string{"rollout", "restart", "-n", name}, "n\n", "Restart 3 workloads, 3 at a time? [y/N]", "nothing was restarted")
	p.says(t, 2, []string{"rollout", "restart", "-n", name}, "", "nothing was restarted")
	if after := e.restarts(t, name); !maps.Equal(before, after) || len(after) != 0 {
		t.Errorf("restarted: %v", after)
	}
	e.change(t, web, func() { web.Spec.Paused = true })
	p.says(t, 1, []string{"rollout", "restart", "-n", name, "--yes", "--batch-size", "3"}, "", "web: it is paused: resume it first", "stopped after 0 of 3 workloads")
	e.change(t, web, func() { web.Spec.Paused = false })
	p.says(t, 2, []string{"rollout", "restart", "-n", name, "--yes", "--batch-size", "1"}, "", "drift deployment/web restarted", "restarted\n")
	if after := e.restarts(t, name); after["web"] == "" || after["other"] != "" {
		t.Errorf("restarted: %v", after)
	}
	e.agree(t, p, name, "2")
	got = p.drift(t, 2, "-n", name)
	for _, w := range got.Workloads {
		if w.Kind != "Pod" {
			t.Errorf("still different after a restart: %+v", w)
		}
	}

	// A PodDefault that is deleted stays on its pods.
	if err := e.client.Delete(t.Context(), pd); err != nil {
		t.Fatal(err)
	}
	got = p.drift(t, 2, "-n", name)
	if len(got.PodDefaults) != 1 || got.PodDefaults[0].Exists || got.PodDefaults[0].Pods["surplus"] != got.Pods-2 || len(got.PodDefaults[0].Pods) != 1 {
		t.Errorf("a deleted PodDefault: %+v", got.PodDefaults)
	}
	text := p.says(t, 2, []string{"drift", "--all-namespaces"}, "", "PodDefault "+name+"/env", "deleted", "statefulset/db")
	if !strings.Contains(text, "NAMESPACE") {
		t.Errorf("no table:\n%s", text)
	}

	for _, bad := range []struct {
		args []string
		text string
	}{
		{[]string{"rollout", "restart", "--batch-size", "0"}, "--batch-size 0: must be at least 1"},
		{[]string{"rollout", "restart", "--timeout", "0s"}, "--timeout 0s: must be positive"},
		{[]string{"rollout", "restart", "-A", "-n", name}, "cannot be used together"},
		{[]string{"drift", "-A", "-n", name}, "cannot be used together"},
		{[]string{"drift", "pod/web"}, "choose poddefault or clusterpoddefault"},
		{[]string{"drift", "poddefault/none", "-n", name}, "there is no poddefault none"},
	} {
		p.says(t, 1, bad.args, "", bad.text)
	}
}

// agree compares drift with the count by content.
func (e *env) agree(t *testing.T, p *plugin, namespace, value string) {
	t.Helper()
	want := e.countByContent(t, namespace, value)
	status := 0
	if want["outdated"]+want["missing"]+want["surplus"] > 0 {
		status = 2
	}
	got := p.drift(t, status, "-n", namespace)
	if len(got.PodDefaults) != 1 {
		t.Fatalf("%d objects: %+v", len(got.PodDefaults), got.PodDefaults)
	}
	if pods := got.PodDefaults[0].Pods; pods["missed"] > 0 { // whose content is that of missing ones
		pods["missing"] += pods["missed"]
		delete(pods, "missed")
	}
	if diff := cmp.Diff(want, got.PodDefaults[0].Pods); diff != "" {
		t.Errorf("pods by state (-content +drift):\n%s", diff)
	}
	if got := got.PodDefaults[0]; got.Revisions[got.Revision] < want["current"] {
		t.Errorf("pods by revision: %v, the current one is %s", got.Revisions, got.Revision)
	}
}

// change updates an object.
func (e *env) change(t *testing.T, object client.Object, change func()) {
	t.Helper()
	eventually(t, "the change of "+object.GetName(), func(ctx context.Context) (bool, error) {
		if err := e.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		change()
		return e.client.Update(ctx, object) == nil, nil
	})
}

// restarts returns when the Deployments of a namespace were restarted.
func (e *env) restarts(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, app := range []string{"early", "web", "other"} {
		d := deployment(namespace, app, "", "")
		if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			t.Fatal(err)
		}
		if at, restarted := d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; restarted {
			out[app] = at
		}
	}
	return out
}
