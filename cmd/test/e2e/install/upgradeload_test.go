// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	teams       = 4
	perTeam     = 50   // PodDefaults
	perSecond   = 50   // creates
	minCreates  = 2000 // while a version is replaced by another: 6,000 in three ways
	maxInFlight = 300
	// exempted is the PodDefault of each team from which the pods of a Job are exempt.
	exempted = 7
)

func team(n int) string { return fmt.Sprintf("team-%d", n%teams) }

func name(n int) string { return fmt.Sprintf("pd-%02d", n%perTeam) }

func variable(podDefault string) string {
	return strings.ToUpper(strings.ReplaceAll(podDefault, "-", "_"))
}

// rolls tells whether a rollout of the PodDefault is under way: half of the pods get "2", the others "1".
func rolls(n int) bool { return n%2 == 0 }

var tokenName = regexp.MustCompile(`kube-api-access-[a-z0-9]+`)

// pod is the n-th one. It selects two or three PodDefaults of its team, and every twentieth belongs to the Job that is exempt.
func (u *upgrade) pod(podName string, n int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team(n), Name: podName, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/never"}},
			Containers:      []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}},
		},
	}
	for _, i := range []int{n, n / perTeam, n * 7} {
		pod.Labels["inject-"+name(i)] = "true"
	}
	if n%20 == 0 {
		pod.Labels["inject-"+name(exempted)] = "true"
		pod.OwnerReferences = []metav1.OwnerReference{u.exempt[pod.Namespace]}
	}
	return pod
}

// wrong is what a pod has other than its labels select; empty if nothing.
func wrong(pod *corev1.Pod) string {
	want := map[string][]string{"EVERYWHERE": {"1"}}
	for key := range pod.Labels {
		podDefault, ok := strings.CutPrefix(key, "inject-")
		n, err := strconv.Atoi(strings.TrimPrefix(podDefault, "pd-"))
		if !ok || err != nil || n == exempted && len(pod.OwnerReferences) > 0 {
			continue
		}
		if want[variable(podDefault)] = []string{"1"}; rolls(n) {
			want[variable(podDefault)] = []string{"1", "2"}
		}
		if pod.Annotations[meta.Mark(podDefault)] == "" {
			return fmt.Sprintf("%s/%s: no mark of %s", pod.Namespace, pod.Name, podDefault)
		}
	}
	for _, env := range pod.Spec.Containers[0].Env {
		if !slices.Contains(want[env.Name], env.Value) {
			return fmt.Sprintf("%s/%s: %s=%s", pod.Namespace, pod.Name, env.Name, env.Value)
		}
		delete(want, env.Name)
	}
	if len(want) > 0 {
		return fmt.Sprintf("%s/%s: no %v", pod.Namespace, pod.Name, want)
	}
	return ""
}

// populate makes 200 PodDefaults, of which half have a rollout in its first step, a ClusterPodDefault, and an Exemption in each team.
// It waits until pods get all that.
func (u *upgrade) populate(t *testing.T) {
	t.Helper()
	u.exempt = map[string]metav1.OwnerReference{}
	objects := func(revision string) string {
		text := `apiVersion: sallyport.io/v1alpha1
kind: ClusterPodDefault
metadata: {name: everywhere, annotations: {example.com/owner: platform}}
spec:
  selector: {}
  namespaceSelector: {matchLabels: {team: "true"}}
  env: [{name: EVERYWHERE, value: "1"}]
`
		for n := range teams * perTeam {
			podDefault := name(n / teams)
			value, rollout := "1", ""
			if rolls(n / teams) {
				value, rollout = revision, "\n  rollout: {by: Pod, maxFailedPercent: 20, steps: [{percent: 50}, {percent: 100, holdSeconds: 3600}]}"
			}
			text += fmt.Sprintf(`---
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: %s, namespace: %s, labels: {part-of: load}, annotations: {example.com/ticket: "%d"}}
spec:
  desc: number %d
  priority: %d
  selector: {matchLabels: {inject-%s: "true"}}
  env: [{name: %s, value: "%s"}]
  volumes: [{name: v-%s, emptyDir: {sizeLimit: 1Mi}}]
  volumeMounts: [{name: v-%s, mountPath: /mnt/%s, readOnly: true}]%s
`, podDefault, team(n), n, n, n%5, podDefault, variable(podDefault), value, podDefault, podDefault, podDefault, rollout)
		}
		return text
	}
	for n := range teams {
		u.namespace(t, team(n), map[string]string{"team": "true"})
		job, err := u.client.BatchV1().Jobs(team(n)).Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "exempt"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.exempt[team(n)] = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}
	}
	u.apply(t, objects("1"))
	for n := range teams {
		u.apply(t, fmt.Sprintf(`apiVersion: sallyport.io/v1alpha1
kind: Exemption
metadata: {name: load, namespace: %s}
spec: {until: %q, podDefaults: [%s], workloads: [Job/exempt], reason: as a test}
`, team(n), time.Now().Add(6*time.Hour).UTC().Format(time.RFC3339), name(exempted)))
	}
	rolling := func(revisions int) {
		lab.Eventually(t.Context(), t, 2*patience, "the revisions to be recorded", func(ctx context.Context) (bool, error) {
			list, err := u.cluster.objects.Resource(podDefaultResource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for _, object := range list.Items {
				current, _, _ := unstructured.NestedString(object.Object, "status", "currentRevision")
				stable, _, _ := unstructured.NestedString(object.Object, "status", "rollout", "stableRevision")
				n, _ := strconv.Atoi(strings.TrimPrefix(object.GetName(), "pd-"))
				if current == "" || rolls(n) && (stable == "" || (current != stable) != (revisions == 2)) {
					return false, fmt.Errorf("%s: current %q, stable %q", object.GetName(), current, stable)
				}
			}
			if len(list.Items) != teams*perTeam {
				return false, fmt.Errorf("%d PodDefaults", len(list.Items))
			}
			return true, nil
		})
	}
	rolling(1)
	u.apply(t, objects("2"))
	rolling(2)
	lab.Eventually(t.Context(), t, patience, "pods to get all of them", func(ctx context.Context) (bool, error) {
		for n := range 3 * perTeam {
			pod := u.pod(fmt.Sprintf("first-%d", n), n)
			answer, err := u.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return false, err
			}
			if problem := wrong(answer); problem != "" {
				return false, fmt.Errorf("%s", problem)
			}
		}
		return true, nil
	})
}

// underLoad creates pods at a steady rate, whether the answers come or not, as long as the change takes and until there were enough.
// None is repeated; all have to succeed and be injected.
func (u *upgrade) underLoad(t *testing.T, what string, change func()) {
	t.Helper()
	var mu sync.Mutex
	var failures, uninjected []string
	var created, held, revision1, revision2 int
	var slowest time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	prefix := fmt.Sprintf("load-%d", began.Unix())
	create := func(n int) {
		pod := u.pod(fmt.Sprintf("%s-%d", prefix, n), n)
		pod.Labels["batch"] = fmt.Sprint(n / 500)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		answer, start := &corev1.Pod{}, time.Now()
		err := u.client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Body(pod).MaxRetries(0).Do(ctx).Into(answer)
		mu.Lock()
		defer mu.Unlock()
		created++
		slowest = max(slowest, time.Since(start))
		if err != nil {
			failures = append(failures, fmt.Sprintf("after %s, for %s: %v", start.Sub(began).Round(time.Millisecond), time.Since(start).Round(time.Millisecond), err))
			return
		}
		if problem := wrong(answer); problem != "" {
			uninjected = append(uninjected, problem)
		}
		for _, env := range answer.Spec.Containers[0].Env {
			switch env.Value {
			case "1":
				revision1++
			case "2":
				revision2++
			}
		}
	}
	var stream, inFlight sync.WaitGroup
	stream.Go(func() {
		slots := make(chan struct{}, maxInFlight)
		for n := 0; lab.Sleep(ctx, 5*time.Millisecond); {
			for due := int(time.Since(began) * perSecond / time.Second); n < due; n++ {
				select {
				case slots <- struct{}{}:
				default:
					mu.Lock()
					held++
					mu.Unlock()
					continue
				}
				number := n
				inFlight.Go(func() {
					create(number)
					<-slots
				})
				if n%500 == 0 && n >= 1000 { // what is older than ten seconds
					inFlight.Go(func() { u.sweep(context.WithoutCancel(ctx), fmt.Sprint(number/500-2)) })
				}
			}
		}
	})
	change()
	changed := time.Since(began)
	lab.Eventually(t.Context(), t, 2*patience, "enough creates", func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		if created < minCreates {
			return false, fmt.Errorf("%d of %d", created, minCreates)
		}
		return true, nil
	})
	cancel()
	stream.Wait()
	elapsed := time.Since(began)
	inFlight.Wait()
	t.Logf("to %s: replaced in %.0f s; %d creates, %.0f/s, %d failed, %d un-injected, %d not sent because %d waited; the slowest took %s; variables of revisions 1 and 2: %d and %d",
		what, changed.Seconds(), created, float64(created)/elapsed.Seconds(), len(failures), len(uninjected), held, maxInFlight, slowest.Round(time.Millisecond), revision1, revision2)
	for kind, problems := range map[string][]string{"failed": failures, "un-injected": uninjected} {
		for _, problem := range problems[:min(len(problems), 5)] {
			t.Errorf("%s (%d in all): %s", kind, len(problems), problem)
		}
	}
	if revision1 == 0 || revision2 == 0 {
		t.Error("the pods of a rollout under way have one revision only")
	}
}

// sweep deletes pods of a batch, so that etcd stays small. What fails is left.
func (u *upgrade) sweep(ctx context.Context, batch string) {
	now := int64(0)
	for n := range teams {
		_ = u.client.CoreV1().Pods(team(n)).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: "batch=" + batch})
	}
}

// TestPodsThatAreNotAsSelectedAreFound: what the load would not notice, no upgrade could break.
func TestPodsThatAreNotAsSelectedAreFound(t *testing.T) {
	t.Parallel()
	injected := func(labels []string, env ...corev1.EnvVar) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: env}}}}
		for _, label := range labels {
			pod.Labels["inject-"+label], pod.Annotations[meta.Mark(label)] = "true", "1"
		}
		return pod
	}
	everywhere := corev1.EnvVar{Name: "EVERYWHERE", Value: "1"}
	unmarked := injected([]string{"pd-01"}, everywhere, corev1.EnvVar{Name: "PD_01", Value: "1"})
	delete(unmarked.Annotations, meta.Mark("pd-01"))
	exempt := injected([]string{name(exempted)}, everywhere)
	exempt.OwnerReferences = []metav1.OwnerReference{{Name: "exempt"}}
	injectedYet := exempt.DeepCopy()
	injectedYet.Spec.Containers[0].Env = append(injectedYet.Spec.Containers[0].Env, corev1.EnvVar{Name: variable(name(exempted)), Value: "1"})
	for what, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"as it should be":                      {injected([]string{"pd-01"}, everywhere, corev1.EnvVar{Name: "PD_01", Value: "1"}), ""},
		"of a revision under way":              {injected([]string{"pd-02"}, everywhere, corev1.EnvVar{Name: "PD_02", Value: "2"}), ""},
		"of a revision that there is not":      {injected([]string{"pd-01"}, everywhere, corev1.EnvVar{Name: "PD_01", Value: "2"}), "PD_01=2"},
		"without a PodDefault that it selects": {injected([]string{"pd-01"}, everywhere), "no map[PD_01:[1]]"},
		"without the one that all pods get":    {injected([]string{"pd-01"}, corev1.EnvVar{Name: "PD_01", Value: "1"}), "no map[EVERYWHERE:[1]]"},
		"with one that it does not select":     {injected(nil, everywhere, corev1.EnvVar{Name: "PD_03", Value: "1"}), "PD_03=1"},
		"without a mark":                       {unmarked, "no mark of pd-01"},
		"exempt":                               {exempt, ""},
		"exempt, and injected":                 {injectedYet, "PD_07=1"},
	} {
		if got := wrong(c.pod); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
