// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
)

// check finds nothing wrong.
var check = admission.Validate(func(context.Context, *corev1.Pod) error { return nil })

func ExampleWithFailurePolicy() {
	rules := admission.Rules(pods, "CREATE")
	refuses := admission.Validating("check.pods.example.com", rules, check)
	admits := admission.Validating("hint.pods.example.com", rules, check, admission.WithFailurePolicy(admissionregistrationv1.Ignore))
	fmt.Println("while the server is away:", refuses.Defaulted().FailurePolicy, admits.FailurePolicy)
	// Output: while the server is away: Fail Ignore
}

func ExampleWithTimeout() {
	rules := admission.Rules(pods, "CREATE")
	quick := admission.Validating("check.pods.example.com", rules, check, admission.WithTimeout(2))
	slow := admission.Validating("scan.pods.example.com", rules, check, admission.WithTimeout(60))
	fmt.Println(quick.TimeoutSeconds, quick.Problems())
	fmt.Println(slow.Problems())
	// Output:
	// 2 <nil>
	// webhook "scan.pods.example.com": timeoutSeconds: is 60; the API server allows 1 to 30
}

func ExampleWithNamespaceSelector() {
	webhook := admission.Validating("check.pods.example.com", admission.Rules(pods, "CREATE"), check,
		admission.WithNamespaceSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"sandbox"}},
		}}))
	fmt.Println(metav1.FormatLabelSelector(webhook.NamespaceSelector), webhook.Problems())
	// Output: kubernetes.io/metadata.name notin (sandbox) <nil>
}

func ExampleWithObjectSelector() {
	webhook := admission.Validating("check.pods.example.com", admission.Rules(pods, "CREATE"), check,
		admission.WithObjectSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}))
	fmt.Println(metav1.FormatLabelSelector(webhook.ObjectSelector), webhook.Problems())
	// Output: team=a <nil>
}

func ExampleWithMatchCondition() {
	webhook := admission.Validating("check.pods.example.com", admission.Rules(pods, "CREATE"), check,
		admission.WithMatchCondition("not-a-daemon", `!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, o.kind == "DaemonSet")`),
		admission.WithMatchCondition("not-from-the-scheduler", `request.userInfo.username != "system:kube-scheduler"`))
	for _, condition := range webhook.MatchConditions {
		fmt.Println(condition.Name)
	}
	fmt.Println(webhook.Problems())
	// Output:
	// not-a-daemon
	// not-from-the-scheduler
	// <nil>
}

func ExampleWebhook_allowWedge() {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	webhook := admission.Validating("check.nodes.example.com", admission.Rules(nodes, "UPDATE"), admission.Validate(
		func(context.Context, *corev1.Node) error { return nil }))
	problem := func(webhook admission.Webhook) error {
		app, err := sallyport.New("nodes", sallyport.WithWebhooks(webhook))
		if err != nil {
			return err
		}
		manifests := app.Command()
		manifests.SetArgs([]string{"manifests", "--part", "configurations", "--url", "https://webhooks.example.com", "--registration", "None",
			"--certificate-source", "Files", "--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key"})
		manifests.SetOut(io.Discard)
		manifests.SetErr(io.Discard)
		return manifests.Execute()
	}

	fmt.Println(problem(webhook) != nil)
	admission.WithAllowWedge("kubelets update the status, which is another resource")(&webhook)
	fmt.Println(problem(webhook))
	// Output:
	// true
	// <nil>
}

func ExampleWarn() {
	handler := admission.Validate(func(ctx context.Context, pod *corev1.Pod) error {
		if pod.Spec.NodeName != "" {
			admission.Warn(ctx, "spec.nodeName: no scheduler looks at this pod")
			admission.Audit(ctx, "example.com/unscheduled", pod.Spec.NodeName)
		}
		return nil
	})
	resp, err := handler.Handle(context.Background(), creation(`{"spec":{"nodeName":"one"}}`))
	fmt.Println(resp.Allowed, resp.Warnings, resp.AuditAnnotations, err)
	// Output: true [spec.nodeName: no scheduler looks at this pod] map[example.com/unscheduled:one] <nil>
}
