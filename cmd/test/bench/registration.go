// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A registration makes the API server call a webhook for each pod that is
// created in the namespace. It must answer: the failure policy is Fail.
type registration struct {
	name           string // fully qualified
	url            string
	caBundle       []byte
	reviewVersions []string
	timeout        int32    // in seconds; 30 if it is 0, because a machine that does much else is slow
	everywhere     []string // resources of the core group whose creation it is called for, besides pods, in all namespaces
}

// register returns when the API server calls the webhook.
func (cp *controlPlane) register(ctx context.Context, r registration) error {
	where := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	if len(r.everywhere) > 0 {
		where = nil
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: r.name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: r.name,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &r.url, CABundle: r.caBundle,
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: append([]string{"pods"}, r.everywhere...),
				},
			}},
			NamespaceSelector:       where,
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			TimeoutSeconds:          new(cmp.Or(r.timeout, 30)),
			AdmissionReviewVersions: r.reviewVersions,
		}},
	}
	configurations := cp.clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := configurations.Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
		return err
	}
	return cp.awaitCalls(ctx, r.name, true)
}

// unregister returns when the API server does not call the webhook any more.
func (cp *controlPlane) unregister(ctx context.Context, name string) error {
	configurations := cp.clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if err := configurations.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return cp.awaitCalls(ctx, name, false)
}

// awaitCalls creates pods on dry run until one does, or does not, reach the
// webhook: the API server learns of configurations a moment after they are
// stored.
func (cp *controlPlane) awaitCalls(ctx context.Context, name string, wanted bool) error {
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "probe"}}},
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		before, err := cp.calls(ctx, name)
		if err != nil {
			return false, err
		}
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := cp.clients.CoreV1().Pods(namespace).Create(ctx, probe, dryRun); err != nil {
			return false, err
		}
		after, err := cp.calls(ctx, name)
		return err == nil && (after > before) == wanted, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server calls %s (or stops to): %w", name, err)
	}
	return nil
}

// calls returns how often the API server has had an answer from a webhook, as
// it counts it itself.
func (cp *controlPlane) calls(ctx context.Context, name string) (int, error) {
	metrics, err := cp.clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	return sumMetric(metrics, "apiserver_admission_webhook_request_total", `name="`+name+`"`)
}

// sumMetric adds up the samples of a metric, in Prometheus' text format, whose
// labels contain a text.
func sumMetric(metrics []byte, metric, label string) (int, error) {
	sum := 0
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, metric+"{") || !strings.Contains(line, label) {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", metric, err)
		}
		sum += int(n)
	}
	return sum, lines.Err()
}
