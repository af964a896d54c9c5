// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// replica answers reviews and writes reports, with the rights of PolicyRules for the latter.
type replica struct {
	*Controller
	leader  *lab.Leader
	handler admission.Handler
	log     *lab.Log
}

func run(t *testing.T, config *rest.Config, leading bool) *replica {
	t.Helper()
	r := &replica{leader: lab.NewLeader(leading), log: &lab.Log{}}
	logger := slog.New(slog.NewTextHandler(r.log, nil))
	watcher, err := source.Watch(store.NewFactory(config, logger), source.WatchOptions{Recorded: true}, logger, func() {})
	if err != nil {
		t.Fatal(err)
	}
	recorder := &Recorder{}
	webhook, err := poddefault.New(watcher, poddefault.DefaultSettings(), poddefault.WithFindings(recorder.Record))
	if err != nil {
		t.Fatal(err)
	}
	r.handler = webhook.Handler
	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "reports-controller", Groups: []string{"system:authenticated"}}
	r.Controller, err = New(limited, Options{Watcher: watcher, Recorder: recorder, Leader: r.leader, Logger: logger, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	r.pace = pace{
		quiet: 20 * time.Millisecond, perSecond: 1000, burst: 1000, first: 10 * time.Millisecond, longest: 100 * time.Millisecond,
		unavailable: 100 * time.Millisecond, again: 200 * time.Millisecond,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, watching := make(chan error, 1), make(chan error, 1)
	go func() { watching <- watcher.Run(ctx) }()
	go func() { done <- errors.Join(r.Run(ctx), <-watching) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// create answers the review of a pod of a Deployment that PodDefaults with the label select.
func (r *replica) create(t *testing.T, namespace, deployment, label string) *admission.Response {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"generateName": deployment + "-5d8f-", "labels": map[string]string{"use": label, "pod-template-hash": "5d8f"},
			"ownerReferences": []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-5d8f", UID: "1", Controller: new(true)}}},
		"spec": map[string]any{"containers": []corev1.Container{{Name: "main"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: admissionv1.Create, Namespace: namespace,
		Object: runtime.RawExtension{Raw: raw},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (r *replica) writes() float64 {
	return testutil.ToFloat64(r.Controller.writes.WithLabelValues("success"))
}

// cluster is an API server with PodDefaults.
type cluster struct {
	config               *rest.Config
	clients              kubernetes.Interface
	podDefaults, reports *rest.RESTClient
}

func (c *cluster) podDefault(t *testing.T, namespace, name, label string, mode kubeflowv1alpha1.Mode) *kubeflowv1alpha1.PodDefault {
	t.Helper()
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pd.APIVersion, pd.Kind = kubeflowv1alpha1.GroupVersion.String(), kubeflowv1alpha1.PodDefaultKind
	pd.Spec.Selector.MatchLabels, pd.Spec.Mode = map[string]string{"use": label}, mode
	pd.Spec.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "hidden-" + name}}
	if err := c.podDefaults.Post().Namespace(namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Body(pd).Do(t.Context()).Into(pd); err != nil {
		t.Fatal(err)
	}
	return pd
}

func (c *cluster) delete(t *testing.T, namespace, name string) {
	t.Helper()
	if err := c.podDefaults.Delete().Namespace(namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Name(name).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// report returns the report of a namespace; nil if there is none.
func (c *cluster) report(ctx context.Context, namespace string) (*openreports.Report, error) {
	report := &openreports.Report{}
	err := c.reports.Get().Namespace(namespace).Resource(Resource.Resource).Name(ReportName).Do(ctx).Into(report)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return report, err
}

// await waits for a report, nil for none, for which the condition holds.
func (c *cluster) await(t *testing.T, what, namespace string, holds func(*openreports.Report) bool) (report *openreports.Report) {
	t.Helper()
	lab.Eventually(t.Context(), t, 2*time.Minute, what, func(ctx context.Context) (ok bool, err error) {
		report, err = c.report(ctx, namespace)
		return err == nil && holds(report), err
	})
	return report
}

// TestReportsOnARealAPIServer runs two replicas, first without rights and without the
// definition that OpenReports publishes.
func TestReportsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	// Its own: the test is about a definition that is missing at first.
	c := &cluster{config: sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(definitions...))}
	c.clients = kubernetes.NewForConfigOrDie(c.config)
	if c.podDefaults, err = store.Client(c.config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme); err != nil {
		t.Fatal(err)
	}
	if c.reports, err = store.Client(c.config, openreports.SchemeGroupVersion, openreports.Install); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team-a", "team-b", "team-c"} {
		if _, err := c.clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.podDefault(t, namespace, "one", "refused", "")
		c.podDefault(t, namespace, "two", "refused", "")
		c.podDefault(t, namespace, "tried", "tried", kubeflowv1alpha1.ModeAudit)
	}
	first, second := run(t, c.config, true), run(t, c.config, false)
	for _, r := range []*replica{first, second} {
		if err := r.Watcher.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	logs := func(what, text string) {
		t.Helper()
		lab.Eventually(t.Context(), t, 2*time.Minute, what, func(context.Context) (bool, error) { return strings.Contains(first.log.String(), text), nil })
	}
	if resp := second.create(t, "team-a", "web", "refused"); resp.Allowed {
		t.Error("a pod with a conflict is admitted")
	}
	if resp := first.create(t, "team-a", "web", "tried"); !resp.Allowed {
		t.Errorf("a pod is denied in mode Audit: %+v", resp.Status)
	}
	logs("the log to say that rights are missing", "a right is missing")
	c.allow(t)
	logs("the log to say that the definition is missing", "the CustomResourceDefinition reports.openreports.io is missing")
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{Paths: []string{lab.ReportsCRD(t)}, MaxTime: 2 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	c.testContents(t, first, second)
	c.testBounds(t, first, second)
	c.testNobodyFights(t, first, second)
	c.testTheEnd(t, first, second)
	if n := testutil.ToFloat64(first.Controller.writes.WithLabelValues("failure")) + testutil.ToFloat64(second.Controller.writes.WithLabelValues("failure")); n > 0 {
		t.Errorf("%v writes failed:\n%s%s", n, first.log, second.log)
	}
}

// testContents waits for what was found while nothing could be written.
func (c *cluster) testContents(t *testing.T, first, second *replica) {
	report := c.await(t, "what both replicas found before the definition was there", "team-a", func(r *openreports.Report) bool { return r != nil && len(r.Results) == 2 })
	if report.Summary != (openreports.ReportSummary{Pass: 1, Fail: 1}) || report.Source != "sallyport" || report.Labels[managedByLabel] != managedBy {
		t.Errorf("got %+v", report)
	}
	for _, r := range report.Results {
		subject := r.Subjects[0]
		if subject.APIVersion != "apps/v1" || subject.Kind != "Deployment" || subject.Namespace != "team-a" || subject.Name != "web" || time.Since(timeOf(&r)) > time.Hour {
			t.Errorf("got %+v", r)
		}
	}
	logs := func(r *replica) bool { return strings.Contains(r.log.String(), "reports are written again") }
	if !logs(first) || !logs(second) {
		t.Errorf("the log does not say that reports are written again:\n%s%s", first.log, second.log)
	}

	// The controller for statuses finds the conflict.
	status, err := json.Marshal(map[string]any{"status": kubeflowv1alpha1.PodDefaultStatus{Conditions: []metav1.Condition{{
		Type: kubeflowv1alpha1.ConditionConflicting, Status: metav1.ConditionTrue, Reason: "Disagreement", Message: "PodDefaults one and two both set env PASSWORD", LastTransitionTime: metav1.Now(),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.podDefaults.Patch(types.MergePatchType).Namespace("team-a").Resource(kubeflowv1alpha1.PodDefaultResource).Name("one").SubResource("status").
		Body(status).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	report = c.await(t, "the conflict", "team-a", func(r *openreports.Report) bool { return r != nil && r.Summary.Warn == 1 })
	results := strings.Join(lines(report.Results), "\n")
	for _, want := range []string{
		"two refusal fail web: PodDefaults one and two both set env PASSWORD of container main: they differ in value",
		"tried audit pass web: it is in mode Audit and was not applied: it would have been applied",
		"one conflict warn one: PodDefaults one and two both set env PASSWORD",
	} {
		if !strings.Contains(results, want) {
			t.Errorf("%q is missing in\n%s", want, results)
		}
	}
	if raw, err := json.Marshal(report); err != nil || strings.Contains(string(raw), "hidden-") {
		t.Errorf("the report has values (%v): %s", err, raw)
	}
	// The API server drops fields that the definition does not know, unless it is asked.
	strict := &openreports.Report{}
	fill(strict, "team-a", report.Results)
	strict.Name = "strict"
	if err := c.reports.Post().Namespace("team-a").Resource(Resource.Resource).Param("dryRun", "All").Param("fieldValidation", "Strict").
		Body(strict).Do(t.Context()).Error(); err != nil {
		t.Errorf("the report is not as the definition has it: %v", err)
	}
}

// testBounds has both replicas refuse 1,000 workloads each.
func (c *cluster) testBounds(t *testing.T, first, second *replica) {
	const each = 1000
	var both sync.WaitGroup
	for name, r := range map[string]*replica{"x": first, "y": second} {
		both.Go(func() {
			for i := range each {
				r.create(t, "team-b", fmt.Sprint(name, "-", i), "refused")
			}
		})
	}
	both.Wait()
	report := c.await(t, "all refusals to be counted", "team-b", func(r *openreports.Report) bool {
		return r != nil && len(r.Results) == maxResults && count(&r.Results[maxResults-1], leftOutProperty) == 2*each-(maxResults-1)
	})
	if report.Summary.Fail != maxResults-1 || report.Summary.Skip != 1 {
		t.Errorf("summary: %+v", report.Summary)
	}
	if n := first.writes() + second.writes(); n > each/4 {
		t.Errorf("%v writes", n)
	}
}

// testNobodyFights shows one replica what another one has reported already.
func (c *cluster) testNobodyFights(t *testing.T, first, second *replica) {
	before, err := c.report(t.Context(), "team-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*replica{first, second} {
		r.create(t, "team-a", "web", "refused")
		r.create(t, "team-a", "web", "tried")
		// Each replica handles one namespace after the other.
		r.create(t, "team-c", fmt.Sprint("after-", r == first), "refused")
		c.await(t, "what was found later", "team-c", func(report *openreports.Report) bool {
			return report != nil && strings.Contains(strings.Join(lines(report.Results), ""), fmt.Sprint("after-", r == first))
		})
	}
	after, err := c.report(t.Context(), "team-a")
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a report was written without a reason (%v): %+v", err, after)
	}
}

// testTheEnd has the other replica lead, and removes what the reports are about.
func (c *cluster) testTheEnd(t *testing.T, first, second *replica) {
	first.leader.Lead(false)
	second.leader.Lead(true)
	c.delete(t, "team-a", "two")
	report := c.await(t, "a refusal to go with its PodDefault", "team-a", func(r *openreports.Report) bool { return r != nil && r.Summary.Fail == 0 })
	if report.Summary != (openreports.ReportSummary{Pass: 1, Warn: 1}) {
		t.Errorf("got %q", lines(report.Results))
	}
	c.delete(t, "team-a", "one")
	c.delete(t, "team-a", "tried")
	c.await(t, "an empty report to be deleted", "team-a", func(r *openreports.Report) bool { return r == nil })

	// A report that somebody else has made.
	foreign := &openreports.Report{ObjectMeta: metav1.ObjectMeta{Name: ReportName}, Source: "other"}
	if err := c.reports.Post().Namespace("team-a").Resource(Resource.Resource).Body(foreign).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	c.podDefault(t, "team-a", "late", "tried", kubeflowv1alpha1.ModeAudit)
	lab.Eventually(t.Context(), t, 2*time.Minute, "the PodDefault to be known", func(context.Context) (bool, error) {
		return second.Watcher.Get(types.NamespacedName{Namespace: "team-a", Name: "late"}) != nil, nil
	})
	second.create(t, "team-a", "web", "tried")
	lab.Eventually(t.Context(), t, 2*time.Minute, "the log to tell of a report of somebody else", func(context.Context) (bool, error) {
		return strings.Contains(second.log.String(), "report team-a/sallyport has no label app.kubernetes.io/managed-by=sallyport"), nil
	})
	if got, err := c.report(t.Context(), "team-a"); err != nil || got == nil || got.Source != "other" || len(got.Results) > 0 {
		t.Errorf("a report of somebody else was changed (%v): %+v", err, got)
	}
}

// allow grants the controller's user its rights.
func (c *cluster) allow(t *testing.T) {
	t.Helper()
	_, err := c.clients.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reports"}, Rules: PolicyRules()}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.clients.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reports"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reports"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reports-controller"}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
