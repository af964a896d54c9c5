// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
)

// setUpController adds what makes a CronJob of each CronTab.
func setUpController(m manager.Manager) error {
	return builder.ControllerManagedBy(m).For(&v1.CronTab{}).Owns(&batchv1.CronJob{}).
		Complete(reconcile.AsReconciler(m.GetClient(), &reconciler{m.GetClient()}))
}

// controllerRules are what the controller may do. Where owner references are checked,
// one that blocks its owner's deletion takes the right to change the finalizers of that.
func controllerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"crontabs"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"crontabs/finalizers", "crontabs/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"cronjobs"}, Verbs: []string{"create", "get", "list", "update", "watch"}},
	}
}

type reconciler struct{ client client.Client }

// Reconcile keeps the CronJob, which has the name of the CronTab and is deleted with
// it, as the CronTab says. The webhooks have seen to it that nothing is missing.
func (r *reconciler) Reconcile(ctx context.Context, cronTab *v1.CronTab) (reconcile.Result, error) {
	job := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: cronTab.Namespace, Name: cronTab.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, job, func() error {
		job.Spec.Schedule = cronTab.Spec.CronSpec
		job.Spec.JobTemplate.Spec.Parallelism = cronTab.Spec.Replicas
		pod := &job.Spec.JobTemplate.Spec.Template.Spec
		pod.RestartPolicy = corev1.RestartPolicyOnFailure
		if len(pod.Containers) == 0 {
			pod.Containers = []corev1.Container{{Name: "crontab"}}
		}
		pod.Containers[0].Image = cronTab.Spec.Image
		return controllerutil.SetControllerReference(cronTab, job, r.client.Scheme())
	})
	if err != nil || cronTab.Status.CronJob == job.Name {
		return reconcile.Result{}, err
	}
	cronTab.Status.CronJob = job.Name
	return reconcile.Result{}, r.client.Status().Update(ctx, cronTab)
}
