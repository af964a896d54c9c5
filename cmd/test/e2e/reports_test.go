// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testReports runs a server with the printed rights and the controller that is off by
// default, and uninstalls it.
func testReports(t *testing.T, e *env) {
	if _, err := envtest.InstallCRDs(e.config, envtest.CRDInstallOptions{Paths: []string{lab.ReportsCRD(t)}, MaxTime: patience}); err != nil {
		t.Fatal(err)
	}
	t.Parallel() // what is found is reported after ten seconds
	const controllers = "--controllers=*," + reports.Name
	name := e.namespace(t, "reports")
	account := e.serviceAccount(t, name, controllers)
	s := e.serve(t, name, "--kubeconfig", account, controllers)
	for object, value := range map[string]string{"one": "hidden-1", "two": "hidden-2"} {
		e.create(t, podDefault(name, object, kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "PASSWORD", Value: value}}}))
	}
	refused := simplePod(name, "refused")
	eventually(t, "a pod to be denied", func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, refused.DeepCopy())
		if err == nil { // the webhook does not know both yet
			return false, e.client.Delete(ctx, refused.DeepCopy(), client.GracePeriodSeconds(0))
		}
		if strings.Contains(err.Error(), "PodDefaults one and two both set env PASSWORD") {
			return true, nil
		}
		return false, err
	})
	report := &openreports.Report{}
	key := client.ObjectKey{Namespace: name, Name: reports.ReportName}
	eventually(t, "the refusal and the conflict to be reported", func(ctx context.Context) (bool, error) {
		report = &openreports.Report{}
		err := e.client.Get(ctx, key, report)
		return err == nil && report.Summary.Fail == 1 && report.Summary.Warn == 2, err
	})
	for _, want := range []struct{ policy, rule, kind, subject string }{
		{"two", "refusal", "Pod", "refused"}, {"one", "conflict", "PodDefault", "one"}, {"two", "conflict", "PodDefault", "two"},
	} {
		if !slices.ContainsFunc(report.Results, func(r openreports.ReportResult) bool {
			return r.Policy == want.policy && r.Rule == want.rule && r.Subjects[0].Kind == want.kind && r.Subjects[0].Name == want.subject &&
				strings.Contains(r.Description, "env PASSWORD") && !strings.Contains(r.Description, "hidden-")
		}) {
			t.Errorf("%v is missing in %+v", want, report.Results)
		}
	}

	s.stop(t)
	if out, err := e.command(t, "uninstall", "--configuration-name", name, "--kubeconfig", e.kubeconfig, "--force"); err != nil || !strings.Contains(out, "reports.openreports.io of ") {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
	if err := e.client.Get(t.Context(), key, report); !apierrors.IsNotFound(err) {
		t.Errorf("the report is still there: %v", err)
	}
}
